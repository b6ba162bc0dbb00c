//! Formats with up to four values per element: `d·{-1, 0, 1}` (tq1_0, tq2_0), `d·{-1, 1}` (q1_0) and `d·{-1, 0, 1, 2}`
//! (q2_0).
//!
//! Layouts (ggml's `block_tq1_0`, `block_tq2_0`, `block_q1_0`, `block_q2_0`), byte offsets in brackets:
//!
//! | format | block | layout |
//! |--------|-------|--------|
//! | tq1_0 | 256 | `qs` \[0..48\] `qh` \[48..52\] `d` f16 \[52\] |
//! | tq2_0 | 256 | `qs` \[0..64\], two bits over 32 bytes (see `unpack`), value `(code - 1)·d`; `d` f16 \[64\] |
//! | q1_0 | 128 | `d` f16 \[0\] `qs` \[2..18\], bit `j % 8` of byte `j / 8` for element `j`, set for `+d` |
//! | q2_0 | 64 | `d` f16 \[0\] `qs` \[2..18\], two bits from bit `2·(j % 4)` of byte `j / 4` on for element `j`, value `(code - 1)·d` |
//!
//! A byte of tq1_0 is a fraction of 256 whose first base-three digits are the codes: digit `n` is the integer part of
//! `3·frac(byte·3ⁿ / 256)`. Runs are bytes 0..32 and 32..48 with five digits each and 48..52 with four; digit `n` of
//! byte `j` of a run is element `n·width + j`.

use half::f16;

use super::bits::{f16_at, inverse, pack, put_f16, signed_extreme, unpack};

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

/// Returns the largest magnitude as the scale, and per element the nearest multiple of the scale, from −1 to `top`,
/// plus 1.
fn digits<const N: usize>(x: &[f32; N], top: f32) -> (f16, [u8; N]) {
    let d = signed_extreme(x).abs();
    let id = inverse(d);
    let digit = |x: f32| ((x * id).round().clamp(-1.0, top) + 1.0) as u8;
    (f16::from_f32(d), x.map(digit))
}

pub(super) fn encode_tq1_0(x: &[f32; 256]) -> [u8; 54] {
    let (d, digits) = digits(x, 1.0);
    let mut block = [0; 54];
    let (wide, rest) = digits.split_at(160);
    let (narrow, last) = rest.split_at(80);
    for (digits, range) in [(wide, 0..32), (narrow, 32..48), (last, 48..52)] {
        let bytes = &mut block[range];
        for (j, byte) in bytes.iter_mut().enumerate() {
            let width = digits
                .len()
                .div_ceil(if digits.len() == 16 { 4 } else { 5 });
            let digit = |n: usize| digits.get(j + n * width).map_or(0, |&d| u32::from(d));
            let number = (0..5).fold(0, |sum, n| sum * 3 + digit(n));
            *byte = (number * 256).div_ceil(243) as u8;
        }
    }
    put_f16(&mut block, 52, d);
    block
}

pub(super) fn encode_tq2_0(x: &[f32; 256]) -> [u8; 66] {
    let (d, digits) = digits(x, 1.0);
    let mut block = [0; 66];
    pack(2, 32, &digits, &mut block[..64]);
    put_f16(&mut block, 64, d);
    block
}

/// Encodes signs, with the mean magnitude as the scale.
pub(super) fn encode_q1_0(x: &[f32; 128]) -> [u8; 18] {
    let sum = x.iter().fold(0.0_f32, |sum, x| sum + x.abs());
    let mut block = [0; 18];
    put_f16(&mut block, 0, f16::from_f32(sum / 128.0));
    for (byte, x) in block[2..].iter_mut().zip(x.chunks_exact(8)) {
        *byte = (0..8).fold(0, |bits, i| bits | u8::from(x[i] >= 0.0) << i);
    }
    block
}

pub(super) fn encode_q2_0(x: &[f32; 64]) -> [u8; 18] {
    let (d, digits) = digits(x, 2.0);
    let mut block = [0; 18];
    put_f16(&mut block, 0, d);
    for (byte, d) in block[2..].iter_mut().zip(digits.chunks_exact(4)) {
        *byte = d[0] | d[1] << 2 | d[2] << 4 | d[3] << 6;
    }
    block
}

pub(super) fn decode_q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = f16_at(block, 0);
    for (out, byte) in out.chunks_exact_mut(8).zip(&block[2..]) {
        for (bit, out) in out.iter_mut().enumerate() {
            *out = if (byte >> bit) & 1 == 1 { d } else { -d };
        }
    }
}

pub(super) fn decode_q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let d = f16_at(block, 0);
    for (out, byte) in out.chunks_exact_mut(4).zip(&block[2..]) {
        for (place, out) in out.iter_mut().enumerate() {
            *out = (f32::from(byte >> (2 * place) & 3) - 1.0) * d;
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

    #[test]
    fn q2_0_codes_are_pairs_of_bits_from_the_lowest_up() {
        let mut block = [0b0101_0101; 18];
        block[..3].copy_from_slice(&[0x00, 0x3e, 0b1110_0100]); // d = 1.5
        let mut out = [f32::NAN; 64];
        decode_q2_0(&block, &mut out);
        assert_eq!(out[..5], [-1.5, 0.0, 1.5, 3.0, 0.0]);
        assert!(out[5..].iter().all(|&x| x == 0.0));
    }

    #[test]
    fn what_the_types_hold_is_kept() {
        let value = |i: usize, n: usize| [-1.5, 0.0, 1.5, 3.0][i * 7 % 5 % n];
        let three: [f32; 256] = std::array::from_fn(|i| value(i, 3));
        let mut out = [f32::NAN; 256];
        decode_tq1_0(&encode_tq1_0(&three), &mut out);
        assert_eq!(out, three);
        decode_tq2_0(&encode_tq2_0(&three), &mut out);
        assert_eq!(out, three);
        let two: [f32; 128] = std::array::from_fn(|i| if i * 7 % 5 < 2 { -1.5 } else { 1.5 });
        let mut out = [f32::NAN; 128];
        decode_q1_0(&encode_q1_0(&two), &mut out);
        assert_eq!(out, two);
        // The largest magnitude is the scale, so twice the scale does not occur.
        let some: [f32; 64] = std::array::from_fn(|i| value(i, 3));
        let mut out = [f32::NAN; 64];
        decode_q2_0(&encode_q2_0(&some), &mut out);
        assert_eq!(out, some);
    }
}
