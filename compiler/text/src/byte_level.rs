//! The printable characters that represent bytes in byte-level BPE vocabularies.
//!
//! The mapping is `bytes_to_unicode` of GPT-2's `encoder.py`. Bytes that are printable in Latin-1 represent themselves;
//! the other 68 map to U+0100 and up, in order. A space is `Ġ`, a line feed `Ċ`.

const fn printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff)
}

const fn characters() -> [char; 256] {
    let mut out = ['\0'; 256];
    let (mut byte, mut next) = (0u8, 0x100u32);
    loop {
        out[byte as usize] = match printable(byte) {
            true => byte as char,
            false => {
                next += 1;
                match char::from_u32(next - 1) {
                    Some(c) => c,
                    None => '\0',
                }
            }
        };
        if byte == u8::MAX {
            return out;
        }
        byte += 1;
    }
}

const CHARACTERS: [char; 256] = characters();

pub(crate) const fn character(byte: u8) -> char {
    CHARACTERS[byte as usize]
}

pub(crate) fn byte(c: char) -> Option<u8> {
    let code = u32::from(c);
    match u8::try_from(code) {
        Ok(byte) => printable(byte).then_some(byte),
        Err(_) => {
            let at = CHARACTERS.iter().position(|&known| known == c);
            at.and_then(|at| u8::try_from(at).ok())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_character_of_its_own() {
        let seen: std::collections::BTreeSet<char> = (0..=255).map(character).collect();
        assert_eq!(seen.len(), 256);
        assert!((0..=255).all(|b| byte(character(b)) == Some(b)));
        assert_eq!(
            (character(b' '), character(b'\n'), character(0xad)),
            ('Ġ', 'Ċ', 'Ń')
        );
        assert_eq!((byte('中'), byte(' '), byte('\u{ad}')), (None, None, None));
    }
}
