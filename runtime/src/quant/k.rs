//! The K formats: blocks of 256 elements in groups of 16 or 32, each with a small integer scale under the block's f16
//! scale.
//!
//! Layouts (ggml's `block_q2_K` and its siblings), byte offsets in brackets. Codes are stored as planes (`unpack`):
//! with "2 bits over 32", each run of 32 bytes holds four planes of 32 codes.
//!
//! | format | layout | value |
//! |--------|--------|-------|
//! | q2_k | `scales` \[0..16\] `qs` 2 bits over 32 \[16..80\] `d` \[80\] `dmin` \[82\] | `(d·sc)·q - dmin·m` |
//! | q3_k | `hmask` 1 bit over 32 \[0..32\] `qs` 2 bits over 32 \[32..96\] `scales` \[96..108\] `d` \[108\] | `(d·(sc - 32))·(q - 4)` |
//! | q4_k | `d` \[0\] `dmin` \[2\] `scales` \[4..16\] `qs` 4 bits over 32 \[16..144\] | `(d·sc)·q - dmin·m` |
//! | q5_k | `d` \[0\] `dmin` \[2\] `scales` \[4..16\] `qh` 1 bit over 32 \[16..48\] `qs` 4 bits over 32 \[48..176\] | `(d·sc)·q - dmin·m` |
//! | q6_k | `ql` 4 bits over 64 \[0..128\] `qh` 2 bits over 32 \[128..192\] `scales` i8 \[192..208\] `d` \[208\] | `(d·sc)·(q - 32)` |
//! | q8_k | `d` f32 \[0..4\] `qs` i8 \[4..260\] `bsums` i16 \[260..292\] | `d·q` |
//!
//! Groups have 16 elements in q2_k, q3_k and q6_k, 32 in q4_k and q5_k. q2_k's scale bytes have `sc` in their low and
//! `m` in their high nibble. [`scales_q3_k`] and [`scales_q4_k`] unpack 6-bit scales. Decoding ignores q8_k's `bsums`,
//! sums of 16 codes for ggml's dot products.

use super::bits::{f16_at, unpack};

pub(super) const LEN: usize = 256;

pub(super) fn decode_q2_k(block: &[u8; 84], out: &mut [f32; LEN]) {
    let codes: [u8; LEN] = unpack(2, 32, &block[16..80]);
    let (d, dmin) = (f16_at(block, 80), f16_at(block, 82));
    let groups = out.chunks_exact_mut(16).zip(codes.chunks_exact(16));
    for ((out, codes), scale) in groups.zip(&block[..16]) {
        affine(
            d * f32::from(scale & 15),
            dmin * f32::from(scale >> 4),
            codes,
            out,
        );
    }
}

pub(super) fn decode_q3_k(block: &[u8; 110], out: &mut [f32; LEN]) {
    let high: [u8; LEN] = unpack(1, 32, &block[..32]);
    let low: [u8; LEN] = unpack(2, 32, &block[32..96]);
    let d = f16_at(block, 108);
    let codes = join(low, high, 2);
    let groups = out.chunks_exact_mut(16).zip(codes.chunks_exact(16));
    for ((out, codes), scale) in groups.zip(scales_q3_k(&block[96..108])) {
        symmetric(d * f32::from(scale), codes, 4, out);
    }
}

pub(super) fn decode_q4_k(block: &[u8; 144], out: &mut [f32; LEN]) {
    let codes: [u8; LEN] = unpack(4, 32, &block[16..]);
    affine_32(&block[..16], &codes, out);
}

pub(super) fn decode_q5_k(block: &[u8; 176], out: &mut [f32; LEN]) {
    let high: [u8; LEN] = unpack(1, 32, &block[16..48]);
    let low: [u8; LEN] = unpack(4, 32, &block[48..]);
    affine_32(&block[..16], &join(low, high, 4), out);
}

pub(super) fn decode_q6_k(block: &[u8; 210], out: &mut [f32; LEN]) {
    let low: [u8; LEN] = unpack(4, 64, &block[..128]);
    let high: [u8; LEN] = unpack(2, 32, &block[128..192]);
    let d = f16_at(block, 208);
    let codes = join(low, high, 4);
    let groups = out.chunks_exact_mut(16).zip(codes.chunks_exact(16));
    for ((out, codes), scale) in groups.zip(&block[192..208]) {
        symmetric(d * f32::from(scale.cast_signed()), codes, 32, out);
    }
}

pub(super) fn decode_q8_k(block: &[u8; 292], out: &mut [f32; LEN]) {
    let d = f32::from_le_bytes([block[0], block[1], block[2], block[3]]);
    for (out, q) in out.iter_mut().zip(&block[4..260]) {
        *out = d * f32::from(q.cast_signed());
    }
}

/// Unpacks the 16 signed scales of q3_k, 6 bits each with an offset of 32, from 12 bytes.
///
/// Bytes 0..8 hold the low four bits: scale `j` in the low, `j + 8` in the high nibble of byte `j`. Bytes 8..12 hold
/// the high two: scale `4·p + j` in bits `2·p ..` of byte `8 + j`.
fn scales_q3_k(bytes: &[u8]) -> [i8; 16] {
    let low: [u8; 16] = unpack(4, 8, &bytes[..8]);
    let high: [u8; 16] = unpack(2, 4, &bytes[8..12]);
    join(low, high, 4).map(|scale| scale.cast_signed() - 32)
}

/// Unpacks the 8 scales and 8 minima of q4_k and q5_k, 6 bits each, from 12 bytes.
///
/// The low six bits of bytes 0..4 are scales 0..4, of bytes 4..8 minima 0..4. For `j` in 4..8, byte `4 + j` has the low
/// four bits of scale `j` in its low nibble, of minimum `j` in its high nibble. The high two bits of these are at the
/// top of bytes `j - 4` and `j`.
fn scales_q4_k(bytes: &[u8]) -> [(u8, u8); 8] {
    std::array::from_fn(|j| {
        if j < 4 {
            (bytes[j] & 63, bytes[j + 4] & 63)
        } else {
            let low = bytes[j + 4];
            (
                (low & 15) | ((bytes[j - 4] >> 6) << 4),
                (low >> 4) | ((bytes[j] >> 6) << 4),
            )
        }
    })
}

fn join<const N: usize>(mut low: [u8; N], high: [u8; N], bits: u32) -> [u8; N] {
    for (low, high) in low.iter_mut().zip(high) {
        *low |= high << bits;
    }
    low
}

/// Decodes the groups of q4_k and q5_k: `head` is `d`, `dmin` and the packed scales.
fn affine_32(head: &[u8], codes: &[u8; LEN], out: &mut [f32; LEN]) {
    let (d, dmin) = (f16_at(head, 0), f16_at(head, 2));
    let groups = out.chunks_exact_mut(32).zip(codes.chunks_exact(32));
    for ((out, codes), (scale, min)) in groups.zip(scales_q4_k(&head[4..16])) {
        affine(d * f32::from(scale), dmin * f32::from(min), codes, out);
    }
}

fn affine(d: f32, m: f32, codes: &[u8], out: &mut [f32]) {
    for (out, &q) in out.iter_mut().zip(codes) {
        *out = d * f32::from(q) - m;
    }
}

fn symmetric(d: f32, codes: &[u8], zero: i16, out: &mut [f32]) {
    for (out, &q) in out.iter_mut().zip(codes) {
        *out = d * f32::from(i16::from(q) - zero);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_of_q4_k_are_spread_over_three_quartets() {
        let mut bytes = [0; 12];
        bytes[1] = 0b10_000001; // scale 1, top of scale 5
        bytes[5] = 0b01_000010; // minimum 1, top of minimum 5
        bytes[9] = 0x43; // the low nibbles of scale 5 and minimum 5
        let mut expect = [(0, 0); 8];
        expect[1] = (1, 2);
        expect[5] = (0x23, 0x14);
        assert_eq!(scales_q4_k(&bytes), expect);
    }

    #[test]
    fn scales_of_q3_k_are_offset_by_32() {
        let mut bytes = [0; 12];
        bytes[2] = 0x51; // low nibbles of scales 2 and 10
        bytes[8 + 2] = 0b00_10_00_11; // tops of scales 2 and 10
        let mut expect = [-32; 16];
        expect[2] = 0x31 - 32;
        expect[10] = 0x25 - 32;
        assert_eq!(scales_q3_k(&bytes), expect);
    }

    #[test]
    fn a_clear_hmask_bit_subtracts_four() {
        let mut block = [0; 110];
        block[108..].copy_from_slice(&[0x00, 0x3c]); // d = 1
        block[96..104].fill(0x11); // all scales 1 + 32
        block[104..108].fill(0xaa);
        block[0] = 1;
        block[32] = 0b10;
        let mut out = [f32::NAN; LEN];
        decode_q3_k(&block, &mut out);
        assert_eq!(out[0], 2.0);
        assert_eq!(out[1..], [-4.0; 255]);
    }

    #[test]
    fn q8_k_has_an_f32_scale_and_ignores_the_sums() {
        let mut block = [0xff; 292];
        block[..4].copy_from_slice(&0.1f32.to_le_bytes());
        block[4] = 100;
        let mut out = [f32::NAN; LEN];
        decode_q8_k(&block, &mut out);
        assert_eq!(out[0], 0.1 * 100.0);
        assert_eq!(out[1..], [-0.1; 255]);
    }
}
