//! One-level formats: blocks of 32 elements under one f16 scale `d`, with an f16 offset `m` in the `_1` forms.
//!
//! Layouts (ggml's `block_q4_0` and its siblings), byte offsets in brackets. `qs` holds the low four bits: byte `j` has
//! element `j` in its low and element `j + 16` in its high nibble. `qh` is a little-endian u32; its bit `j` is the
//! fifth bit of element `j`.
//!
//! | format | layout                                    | value          |
//! |--------|-------------------------------------------|----------------|
//! | q4_0   | `d` \[0\] `qs` \[2..18\]                  | `(q - 8)·d`    |
//! | q4_1   | `d` \[0\] `m` \[2\] `qs` \[4..20\]        | `q·d + m`      |
//! | q5_0   | `d` \[0\] `qh` \[2..6\] `qs` \[6..22\]    | `(q - 16)·d`   |
//! | q5_1   | `d` \[0\] `m` \[2\] `qh` \[4..8\] `qs` \[8..24\] | `q·d + m` |
//! | q8_0   | `d` \[0\] `qs` i8 \[2..34\]               | `q·d`          |
//! | q8_1   | `d` \[0\] `s` \[2\] `qs` i8 \[4..36\]     | `q·d`          |
//!
//! In q8_1, `s` is `d` times the sum of the codes. ggml's dot products use it; decoding ignores it.
//!
//! Encoding follows ggml's `quantize_row_*_ref`: the f32 scale determines the codes and is then rounded to f16.

use super::bits::{f16_at, inverse, pack, put_f16, signed_extreme, unpack};
use half::f16;

const LEN: usize = 32;

pub(super) fn decode_q4_0(block: &[u8; 18], out: &mut [f32; LEN]) {
    symmetric(f16_at(block, 0), unpack(4, 16, &block[2..]), 8, out);
}

pub(super) fn decode_q4_1(block: &[u8; 20], out: &mut [f32; LEN]) {
    affine(
        f16_at(block, 0),
        f16_at(block, 2),
        unpack(4, 16, &block[4..]),
        out,
    );
}

pub(super) fn decode_q5_0(block: &[u8; 22], out: &mut [f32; LEN]) {
    symmetric(f16_at(block, 0), five_bits(block, 2), 16, out);
}

pub(super) fn decode_q5_1(block: &[u8; 24], out: &mut [f32; LEN]) {
    affine(f16_at(block, 0), f16_at(block, 2), five_bits(block, 4), out);
}

pub(super) fn decode_q8_0(block: &[u8; 34], out: &mut [f32; LEN]) {
    bytes(f16_at(block, 0), &block[2..], out);
}

pub(super) fn decode_q8_1(block: &[u8; 36], out: &mut [f32; LEN]) {
    bytes(f16_at(block, 0), &block[4..], out);
}

fn symmetric(d: f32, codes: [u8; LEN], zero: i16, out: &mut [f32; LEN]) {
    for (out, q) in out.iter_mut().zip(codes) {
        *out = f32::from(i16::from(q) - zero) * d;
    }
}

fn affine(d: f32, m: f32, codes: [u8; LEN], out: &mut [f32; LEN]) {
    for (out, q) in out.iter_mut().zip(codes) {
        *out = f32::from(q) * d + m;
    }
}

fn bytes(d: f32, qs: &[u8], out: &mut [f32; LEN]) {
    for (out, &q) in out.iter_mut().zip(qs) {
        *out = f32::from(q.cast_signed()) * d;
    }
}

fn five_bits(block: &[u8], at: usize) -> [u8; LEN] {
    let high = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let mut codes: [u8; LEN] = unpack(4, 16, &block[at + 4..]);
    for (j, code) in codes.iter_mut().enumerate() {
        *code |= (((high >> j) & 1) as u8) << 4;
    }
    codes
}

fn put_five_bits(block: &mut [u8], at: usize, codes: &[u8; LEN]) {
    let high = codes
        .iter()
        .rev()
        .fold(0u32, |high, code| (high << 1) | u32::from(code >> 4));
    block[at..at + 4].copy_from_slice(&high.to_le_bytes());
    pack(4, 16, codes, &mut block[at + 4..]);
}

pub(super) fn encode_q4_0(x: &[f32; LEN]) -> [u8; 18] {
    let mut block = [0; 18];
    let (d, codes) = quantise_symmetric(x, 8);
    put_f16(&mut block, 0, d);
    pack(4, 16, &codes, &mut block[2..]);
    block
}

pub(super) fn encode_q5_0(x: &[f32; LEN]) -> [u8; 22] {
    let mut block = [0; 22];
    let (d, codes) = quantise_symmetric(x, 16);
    put_f16(&mut block, 0, d);
    put_five_bits(&mut block, 2, &codes);
    block
}

pub(super) fn encode_q4_1(x: &[f32; LEN]) -> [u8; 20] {
    let mut block = [0; 20];
    let (d, m, codes) = quantise_affine(x, 15);
    put_f16(&mut block, 0, d);
    put_f16(&mut block, 2, m);
    pack(4, 16, &codes, &mut block[4..]);
    block
}

pub(super) fn encode_q5_1(x: &[f32; LEN]) -> [u8; 24] {
    let mut block = [0; 24];
    let (d, m, codes) = quantise_affine(x, 31);
    put_f16(&mut block, 0, d);
    put_f16(&mut block, 2, m);
    put_five_bits(&mut block, 4, &codes);
    block
}

/// Encodes with `d = max|x| / 127` and `q = 127 x / max|x|` rounded to nearest, ties to even, as ggml's CPU kernels do.
/// ggml's file quantiser rounds ties away from zero.
pub(super) fn encode_q8_0(x: &[f32; LEN]) -> [u8; 34] {
    let mut block = [0; 34];
    let most = signed_extreme(x).abs();
    put_f16(&mut block, 0, f16::from_f32(most / 127.0));
    let id = if most == 0.0 { 0.0 } else { 127.0 / most };
    for (q, x) in block[2..].iter_mut().zip(x) {
        *q = ((x * id).round_ties_even() as i8).cast_unsigned();
    }
    block
}

/// Quantises with code 0 for the element of largest magnitude. The scale has the opposite sign. Values of the other
/// sign saturate at the top code.
fn quantise_symmetric(x: &[f32; LEN], zero: u8) -> (f16, [u8; LEN]) {
    let d = signed_extreme(x) / -f32::from(zero);
    let id = inverse(d);
    let codes = x.map(|x| ((x * id + (f32::from(zero) + 0.5)) as u8).min(2 * zero - 1));
    (f16::from_f32(d), codes)
}

/// Quantises with code 0 for the least element and the top code for the greatest.
fn quantise_affine(x: &[f32; LEN], top: u8) -> (f16, f16, [u8; LEN]) {
    let min = x
        .iter()
        .fold(f32::MAX, |min, &x| if x < min { x } else { min });
    let max = x
        .iter()
        .fold(f32::MIN, |max, &x| if x > max { x } else { max });
    let d = (max - min) / f32::from(top);
    let id = inverse(d);
    let codes = x.map(|x| (((x - min) * id + 0.5) as u8).min(top));
    (f16::from_f32(d), f16::from_f32(min), codes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q4_0_puts_the_upper_half_in_high_nibbles() {
        let mut block = [0x88; 18];
        block[..3].copy_from_slice(&[0x00, 0x38, 0xf0]); // d = 0.5
        let mut out = [f32::NAN; LEN];
        decode_q4_0(&block, &mut out);
        let mut expect = [0.0; LEN];
        expect[0] = -4.0;
        expect[16] = 3.5;
        assert_eq!(out, expect);
    }

    #[test]
    fn q5_1_takes_the_fifth_bit_from_qh() {
        let mut block = [0; 24];
        block[..4].copy_from_slice(&[0x00, 0x3c, 0x00, 0xc0]); // d = 1, m = -2
        block[4] = 0b10;
        block[7] = 0x80;
        block[8 + 1] = 0x03;
        let mut out = [f32::NAN; LEN];
        decode_q5_1(&block, &mut out);
        let mut expect = [-2.0; LEN];
        expect[1] = 17.0;
        expect[31] = 14.0;
        assert_eq!(out, expect);
    }

    #[test]
    fn q8_1_ignores_the_sum() {
        let mut block = [0; 36];
        block[..5].copy_from_slice(&[0x00, 0x40, 0xff, 0xff, 0x81]); // d = 2, s = NaN
        let mut out = [f32::NAN; LEN];
        decode_q8_1(&block, &mut out);
        assert_eq!(out[0], -254.0);
        assert_eq!(out[1..], [0.0; 31]);
    }

    #[test]
    fn q8_0_rounds_ties_to_even() {
        let mut x = [0.0; LEN];
        x[..4].copy_from_slice(&[127.0, 2.5, -3.5, 0.5]);
        let block = encode_q8_0(&x);
        assert_eq!(block[..6], [0x00, 0x3c, 127, 2, 0xfc, 0]);
    }

    #[test]
    fn the_extreme_element_of_a_symmetric_block_is_code_zero() {
        let mut x = [0.0; LEN];
        x[0] = 8.0;
        x[1] = -8.0;
        let block = encode_q4_0(&x);
        assert_eq!(
            block[..4],
            [0x00, 0xbc, 0x80, 0x8f],
            "d = -1, and -8 saturates at code 15"
        );
    }
}
