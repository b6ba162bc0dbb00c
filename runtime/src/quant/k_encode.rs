//! Encoders of the K formats (layouts in `k`): valid and close, but not identical to ggml's.
//!
//! A block takes the smallest f16 scale for which every group's step is a small multiple. Steps are rounded up to cover
//! each group's range. ggml searches for the scales of least weighted error (`k_search`), whose error is slightly
//! smaller.

use super::bits::{f16_not_below, inverse, pack, put_f16, signed_extreme};
use super::k::LEN;
use half::f16;

/// A block of `GROUPS` groups with values `(d·scale)·code - dmin·min`.
pub(super) struct Affine<const GROUPS: usize> {
    pub(super) d: f16,
    pub(super) dmin: f16,
    pub(super) scales: [u8; GROUPS],
    pub(super) mins: [u8; GROUPS],
    pub(super) codes: [u8; LEN],
}

/// A block of 16 groups with values `(d·scale)·(code - zero)`.
pub(super) struct Symmetric {
    pub(super) d: f16,
    pub(super) scales: [i8; 16],
    pub(super) codes: [u8; LEN],
}

pub(super) fn encode_q2_k(x: &[f32; LEN]) -> [u8; 84] {
    pack_q2_k(&quantise_affine::<16>(x, 3, 15))
}

pub(super) fn pack_q2_k(q: &Affine<16>) -> [u8; 84] {
    let mut block = [0; 84];
    for (byte, (scale, min)) in block.iter_mut().zip(q.scales.into_iter().zip(q.mins)) {
        *byte = scale | (min << 4);
    }
    pack(2, 32, &q.codes, &mut block[16..80]);
    put_f16(&mut block, 80, q.d);
    put_f16(&mut block, 82, q.dmin);
    block
}

pub(super) fn encode_q3_k(x: &[f32; LEN]) -> [u8; 110] {
    pack_q3_k(&quantise_symmetric(x, 4, 31))
}

pub(super) fn pack_q3_k(q: &Symmetric) -> [u8; 110] {
    let mut block = [0; 110];
    pack(1, 32, &q.codes.map(|code| code >> 2), &mut block[..32]);
    pack(2, 32, &q.codes, &mut block[32..96]);
    let scales = q.scales.map(|scale| (scale + 32).cast_unsigned());
    pack(4, 8, &scales, &mut block[96..104]);
    pack(2, 4, &scales.map(|scale| scale >> 4), &mut block[104..108]);
    put_f16(&mut block, 108, q.d);
    block
}

pub(super) fn encode_q4_k(x: &[f32; LEN]) -> [u8; 144] {
    pack_q4_k(&quantise_affine::<8>(x, 15, 63))
}

pub(super) fn pack_q4_k(q: &Affine<8>) -> [u8; 144] {
    let mut block = [0; 144];
    put_head(&mut block, q);
    pack(4, 32, &q.codes, &mut block[16..]);
    block
}

pub(super) fn encode_q5_k(x: &[f32; LEN]) -> [u8; 176] {
    pack_q5_k(&quantise_affine::<8>(x, 31, 63))
}

pub(super) fn pack_q5_k(q: &Affine<8>) -> [u8; 176] {
    let mut block = [0; 176];
    put_head(&mut block, q);
    pack(1, 32, &q.codes.map(|code| code >> 4), &mut block[16..48]);
    pack(4, 32, &q.codes, &mut block[48..]);
    block
}

pub(super) fn encode_q6_k(x: &[f32; LEN]) -> [u8; 210] {
    pack_q6_k(&quantise_symmetric(x, 32, 127))
}

pub(super) fn pack_q6_k(q: &Symmetric) -> [u8; 210] {
    let mut block = [0; 210];
    pack(4, 64, &q.codes, &mut block[..128]);
    pack(2, 32, &q.codes.map(|code| code >> 4), &mut block[128..192]);
    for (byte, scale) in block[192..208].iter_mut().zip(q.scales) {
        *byte = scale.cast_unsigned();
    }
    put_f16(&mut block, 208, q.d);
    block
}

fn put_head(block: &mut [u8], q: &Affine<8>) {
    put_f16(block, 0, q.d);
    put_f16(block, 2, q.dmin);
    for j in 0..4 {
        let (scale, min) = (q.scales[j + 4], q.mins[j + 4]);
        block[4 + j] = q.scales[j] | ((scale >> 4) << 6);
        block[8 + j] = q.mins[j] | ((min >> 4) << 6);
        block[12 + j] = (scale & 15) | ((min & 15) << 4);
    }
}

/// Quantises to codes up to `top`, with scales and minima up to `scale_top`.
fn quantise_affine<const GROUPS: usize>(x: &[f32; LEN], top: u8, scale_top: u8) -> Affine<GROUPS> {
    let groups = || x.chunks_exact(LEN / GROUPS);
    let mut depths = [0.0; GROUPS];
    let mut heights = [0.0; GROUPS];
    for (group, (depth, height)) in groups().zip(depths.iter_mut().zip(&mut heights)) {
        *depth = group.iter().fold(0.0, |depth: f32, x| depth.max(-x));
        *height = group.iter().fold(-*depth, |height: f32, &x| height.max(x));
    }
    let (dmin, mins) = small_multiples(depths, scale_top);
    let offsets = mins.map(|min| dmin.to_f32() * f32::from(min));
    let mut steps = heights;
    for (step, offset) in steps.iter_mut().zip(offsets) {
        *step = ((*step + offset) / f32::from(top)).max(0.0);
    }
    let (d, scales) = small_multiples(steps, scale_top);
    let mut codes = [0; LEN];
    for (i, (group, codes)) in groups()
        .zip(codes.chunks_exact_mut(LEN / GROUPS))
        .enumerate()
    {
        let id = inverse(d.to_f32() * f32::from(scales[i]));
        for (code, x) in codes.iter_mut().zip(group) {
            *code = (((x + offsets[i]) * id).round() as u8).min(top);
        }
    }
    Affine {
        d,
        dmin,
        scales,
        mins,
        codes,
    }
}

/// Quantises to codes below `2·zero`, with scales of magnitude up to `scale_top`. As in q4_0, a group's extreme element
/// has code 0 and determines the scale's sign.
fn quantise_symmetric(x: &[f32; LEN], zero: u8, scale_top: u8) -> Symmetric {
    let mut extremes = [0.0; 16];
    for (extreme, group) in extremes.iter_mut().zip(x.chunks_exact(16)) {
        *extreme = signed_extreme(group);
    }
    let (d, magnitudes) = small_multiples(
        extremes.map(|extreme| extreme.abs() / f32::from(zero)),
        scale_top,
    );
    let mut scales = [0; 16];
    let mut codes = [0; LEN];
    for (i, (group, codes)) in x
        .chunks_exact(16)
        .zip(codes.chunks_exact_mut(16))
        .enumerate()
    {
        let magnitude = magnitudes[i].cast_signed();
        scales[i] = if extremes[i] > 0.0 {
            -magnitude
        } else {
            magnitude
        };
        let id = inverse(d.to_f32() * f32::from(scales[i]));
        for (code, x) in codes.iter_mut().zip(group) {
            *code = ((x * id + f32::from(zero)).round() as u8).min(2 * zero - 1);
        }
    }
    Symmetric { d, scales, codes }
}

/// Returns a unit and, for each length, its smallest multiple, at most `top`, that covers the length.
fn small_multiples<const N: usize>(lengths: [f32; N], top: u8) -> (f16, [u8; N]) {
    let unit = f16_not_below(lengths.iter().fold(0.0, |max: f32, &x| max.max(x)) / f32::from(top));
    let id = inverse(unit.to_f32());
    (
        unit,
        lengths.map(|length| ((length * id).ceil() as u8).min(top)),
    )
}
