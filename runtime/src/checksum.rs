/// A 64-bit checksum. Each eight-byte word changes the state invertibly, so inputs that differ in one word always
/// differ.
#[derive(Clone, Copy, Debug)]
pub struct Checksum {
    state: u64,
    tail: [u8; 8],
    len: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum {
            state: 0x9e37_79b9_7f4a_7c15,
            tail: [0; 8],
            len: 0,
        }
    }
}

impl Checksum {
    /// Returns the checksum of some bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut sum = Checksum::default();
        sum.update(bytes);
        sum.value()
    }

    /// Appends bytes.
    pub fn update(&mut self, mut bytes: &[u8]) {
        let held = (self.len % 8) as usize;
        self.len += bytes.len() as u64;
        if held > 0 {
            let n = bytes.len().min(8 - held);
            self.tail[held..held + n].copy_from_slice(&bytes[..n]);
            bytes = &bytes[n..];
            if held + n < 8 {
                return;
            }
            self.word(u64::from_le_bytes(self.tail));
        }
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|w| self.word(u64::from_le_bytes(*w)));
        self.tail = [0; 8];
        self.tail[..rest.len()].copy_from_slice(rest);
    }

    const fn word(&mut self, word: u64) {
        let mixed = (self.state ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        self.state = mixed.rotate_left(29);
    }

    /// Returns the checksum of all bytes so far.
    pub const fn value(mut self) -> u64 {
        if !self.len.is_multiple_of(8) {
            self.word(u64::from_le_bytes(self.tail));
        }
        self.word(self.len);
        self.state ^ self.state >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole_and_every_change_is_seen() {
        let bytes: Vec<u8> = (0..61).collect();
        let whole = Checksum::of(&bytes);
        for cut in 0..bytes.len() {
            let mut sum = Checksum::default();
            sum.update(&bytes[..cut]);
            sum.update(&bytes[cut..]);
            assert_eq!(sum.value(), whole);
            assert_ne!(Checksum::of(&bytes[..cut]), whole);
            let mut changed = bytes.clone();
            changed[cut] ^= 1 << (cut % 8);
            assert_ne!(Checksum::of(&changed), whole);
        }
    }
}
