//! Four-bit codes into a fixed table of 16 unevenly spaced values, denser near zero.
//!
//! Layouts (ggml's `block_iq4_nl` and `block_iq4_xs`), byte offsets in brackets; code nibbles in runs of 16 bytes,
//! low nibbles first.
//!
//! | format | block | layout | value |
//! |--------|-------|--------|-------|
//! | iq4_nl | 32  | `d` \[0\] `qs` \[2..18\] | `d·VALUES[q]` |
//! | iq4_xs | 256 | `d` \[0\] `scales_h` u16 \[2\] `scales_l` \[4..8\] `qs` \[8..136\] | `(d·(sc - 32))·VALUES[q]` |
//!
//! iq4_xs has a 6-bit scale for every 32 elements: the low four bits of scale `i` are nibble `i % 2` of byte
//! `i / 2` of `scales_l`, the high two are bits `2·i ..` of `scales_h`.

use super::bits::{f16_at, inverse, pack, put_f16, signed_extreme, unpack};
use half::f16;

/// ggml's `kvalues_iq4nl`.
const VALUES: [f32; 16] = [
    -127.0, -104.0, -83.0, -65.0, -49.0, -35.0, -22.0, -10.0, 1.0, 13.0, 25.0, 38.0, 53.0, 69.0,
    89.0, 113.0,
];

/// Magnitude below which ggml treats groups as zero (`GROUP_MAX_EPS`).
const ZERO_GROUP: f32 = 1e-15;

pub(super) fn decode_iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    look_up(f16_at(block, 0), &unpack::<32>(4, 16, &block[2..]), out);
}

pub(super) fn decode_iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let codes: [u8; 256] = unpack(4, 16, &block[8..]);
    let d = f16_at(block, 0);
    let high = u16::from_le_bytes([block[2], block[3]]);
    let groups = out.chunks_exact_mut(32).zip(codes.chunks_exact(32));
    for (i, (out, codes)) in groups.enumerate() {
        let low = (block[4 + i / 2] >> (4 * (i % 2))) & 15;
        let scale = i16::from(low) | (((high >> (2 * i)) & 3) << 4).cast_signed();
        look_up(d * f32::from(scale - 32), codes, out);
    }
}

fn look_up(d: f32, codes: &[u8], out: &mut [f32]) {
    for (out, &code) in out.iter_mut().zip(codes) {
        *out = d * VALUES[usize::from(code)];
    }
}

/// Encodes as ggml's `quantize_row_iq4_nl_ref`. The scale maps the extreme element to the table's first entry and
/// determines the codes. The stored scale minimises the error, weighted by `x²`, for these codes.
pub(super) fn encode_iq4_nl(x: &[f32; 32]) -> [u8; 18] {
    let (d, codes) = fit(x);
    let mut block = [0; 18];
    put_f16(&mut block, 0, f16::from_f32(d));
    pack(4, 16, &codes, &mut block[2..]);
    block
}

/// Encodes each group with the scale of [`encode_iq4_nl`], rounded to a multiple of 1/32 of the largest scale. ggml
/// tries fifteen scales per group.
pub(super) fn encode_iq4_xs(x: &[f32; 256]) -> [u8; 136] {
    let (groups, _) = x.as_chunks::<32>();
    let mut steps = [0.0; 8];
    for (step, group) in steps.iter_mut().zip(groups) {
        *step = fit(group).0;
    }
    let d = f16::from_f32(signed_extreme(&steps) / -32.0);
    let id = inverse(d.to_f32());
    let mut block = [0; 136];
    let mut codes = [0; 256];
    let mut high = 0u16;
    for (i, (group, codes)) in groups.iter().zip(codes.chunks_exact_mut(32)).enumerate() {
        let scale = ((steps[i] * id).round() as i16).clamp(-32, 31);
        let inverse_step = inverse(d.to_f32() * f32::from(scale));
        for (code, x) in codes.iter_mut().zip(group) {
            *code = nearest(x * inverse_step);
        }
        let stored = (scale + 32).cast_unsigned();
        block[4 + i / 2] |= ((stored & 15) as u8) << (4 * (i % 2));
        high |= (stored >> 4) << (2 * i);
    }
    put_f16(&mut block, 0, d);
    block[2..4].copy_from_slice(&high.to_le_bytes());
    pack(4, 16, &codes, &mut block[8..]);
    block
}

pub(super) fn search_iq4_xs(x: &[f32; 256]) -> [u8; 136] {
    super::k_search::encode_iq4_xs(x, &VALUES, nearest)
}

fn fit(x: &[f32; 32]) -> (f32, [u8; 32]) {
    let extreme = signed_extreme(x);
    if extreme.abs() < ZERO_GROUP {
        return (0.0, [0; 32]);
    }
    let id = 1.0 / (extreme / VALUES[0]);
    let codes = x.map(|x| nearest(id * x));
    let (mut num, mut den) = (0.0, 0.0);
    for (x, code) in x.iter().zip(codes) {
        let q = VALUES[usize::from(code)];
        let weight = x * x;
        num += weight * q * x;
        den += weight * q * q;
    }
    (num / den, codes)
}

/// Returns the code nearest to `x`; ties take the upper entry.
fn nearest(x: f32) -> u8 {
    let above = VALUES.partition_point(|&v| v <= x).clamp(1, 15);
    let lower = x - VALUES[above - 1] < VALUES[above] - x;
    (if lower { above - 1 } else { above }) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_covers_the_ends_and_breaks_ties_upwards() {
        for (code, &value) in VALUES.iter().enumerate() {
            assert_eq!(usize::from(nearest(value)), code);
        }
        assert_eq!(nearest(f32::NEG_INFINITY), 0);
        assert_eq!(nearest(f32::INFINITY), 15);
        assert_eq!(nearest(7.0), 9, "midway between 1 and 13");
    }

    #[test]
    fn iq4_xs_scales_are_split_between_two_fields() {
        let mut block = [0x99; 136]; // code 9 everywhere: 13
        block[..8].copy_from_slice(&[0x00, 0x3c, 0x08, 0x00, 0x10, 0, 0, 0]); // d = 1, scale 1 is 0b10_0001
        let mut out = [f32::NAN; 256];
        decode_iq4_xs(&block, &mut out);
        assert_eq!(out[..32], [-32.0 * 13.0; 32]);
        assert_eq!(out[32..64], [13.0; 32]);
        assert_eq!(out[64..], [-32.0 * 13.0; 192]);
    }
}
