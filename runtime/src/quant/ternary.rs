//! Formats with no more than three values an element: `d·{-1, 0, 1}` (tq1_0, tq2_0) and `d·{-1, 1}` (q1_0).
//!
//! Layouts (ggml's `block_tq1_0`, `block_tq2_0`, `block_q1_0`), byte offsets in brackets:
//!
//! | format | block | layout |
//! |--------|-------|--------|
//! | tq1_0 | 256 | `qs` \[0..48\] `qh` \[48..52\] `d` f16 \[52\] |
//! | tq2_0 | 256 | `qs` \[0..64\], two bits over 32 bytes (see `unpack`), value `(code - 1)·d`; `d` f16 \[64\] |
//! | q1_0 | 128 | `d` f16 \[0\] `qs` \[2..18\], bit `j % 8` of byte `j / 8` for element `j`, set for `+d` |
//!
//! A byte of tq1_0 is a fraction of 256 whose first digits in base three are the codes, most significant first:
//! digit `n` is the integer part of `3·frac(byte·3ⁿ / 256)`. The runs of bytes are 0..32 and 32..48 with five
//! digits a byte and 48..52 with four; within a run, digit `n` of byte `j` is element `n·width + j`.

use super::bits::{f16_at, unpack};

pub(super) fn decode_tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    let d = f16_at(block, 52);
    let (fives, fours) = out.split_at_mut(240);
    let (wide, narrow) = fives.split_at_mut(160);
    for (bytes, out) in [
        (&block[..32], wide),
        (&block[32..48], narrow),
        (&block[48..52], fours),
    ] {
        let mut power = 1u8;
        for out in out.chunks_exact_mut(bytes.len()) {
            for (out, byte) in out.iter_mut().zip(bytes) {
                let digit = (u16::from(byte.wrapping_mul(power)) * 3) >> 8;
                *out = (f32::from(digit) - 1.0) * d;
            }
            power = power.wrapping_mul(3);
        }
    }
}

pub(super) fn decode_tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = f16_at(block, 64);
    let codes: [u8; 256] = unpack(2, 32, &block[..64]);
    for (out, code) in out.iter_mut().zip(codes) {
        *out = (f32::from(code) - 1.0) * d;
    }
}

pub(super) fn decode_q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = f16_at(block, 0);
    for (out, byte) in out.chunks_exact_mut(8).zip(&block[2..]) {
        for (bit, out) in out.iter_mut().enumerate() {
            *out = if (byte >> bit) & 1 == 1 { d } else { -d };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tq1_0_bytes_hold_five_base_three_digits() {
        let mut block = [128; 54]; // 0.11111 in base three, rounded up: all ones, that is zero
        block[52..].copy_from_slice(&[0x00, 0x40]); // d = 2
        // Digits 2 1 0 0 2 make 191; a byte stores ceil(191·256 / 243).
        block[3] = 202;
        let mut out = [f32::NAN; 256];
        decode_tq1_0(&block, &mut out);
        let mut expect = [0.0; 256];
        for (n, value) in [2.0, 0.0, -2.0, -2.0, 2.0].into_iter().enumerate() {
            expect[32 * n + 3] = value;
        }
        assert_eq!(out, expect);
    }

    #[test]
    fn q1_0_bits_are_signs_from_the_lowest_bit_up() {
        let mut block = [0; 18];
        block[..4].copy_from_slice(&[0x00, 0x3e, 0b101, 0x00]); // d = 1.5
        block[17] = 0x80;
        let mut out = [f32::NAN; 128];
        decode_q1_0(&block, &mut out);
        let mut expect = [-1.5; 128];
        for j in [0, 2, 127] {
            expect[j] = 1.5;
        }
        assert_eq!(out, expect);
    }
}
