//! Four-bit floating-point elements (e2m1) under an eight-bit floating-point scale.
//!
//! An e2m1 element is one of ±{0, 0.5, 1, 1.5, 2, 3, 4, 6} (OCP Microscaling Formats 1.0). The high bit is its sign. As
//! in ggml, the table holds the doubled, integral values and the scale is halved.
//!
//! Layouts (ggml's `block_mxfp4` and `block_nvfp4`), byte offsets in brackets:
//!
//! | format | block | layout | value |
//! |--------|-------|--------|-------|
//! | mxfp4 | 32 | `e` e8m0 \[0\] `qs` \[1..17\], nibbles in one run of 16 bytes | `VALUES[q]·2^(e - 128)` |
//! | nvfp4 | 64 | `d` 4 × ue4m3 \[0..4\] `qs` \[4..36\], nibbles in runs of 8 bytes | `VALUES[q]·d/2`, one `d` for 16 elements |

use super::bits::{pack, signed_extreme, unpack};

/// The e2m1 values, doubled. Code 8 is a positive zero, as in ggml.
const VALUES: [f32; 16] = [
    0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 0.0, -1.0, -2.0, -3.0, -4.0, -6.0, -8.0, -12.0,
];

pub(super) fn decode_mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    look_up(half_e8m0(block[0]), &unpack::<32>(4, 16, &block[1..]), out);
}

pub(super) fn decode_nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    let codes: [u8; 64] = unpack(4, 8, &block[4..]);
    let groups = out.chunks_exact_mut(16).zip(codes.chunks_exact(16));
    for ((out, codes), &d) in groups.zip(&block[..4]) {
        look_up(half_ue4m3(d), codes, out);
    }
}

fn look_up(d: f32, codes: &[u8], out: &mut [f32]) {
    for (out, &code) in out.iter_mut().zip(codes) {
        *out = VALUES[usize::from(code)] * d;
    }
}

/// Returns half of the e8m0 value, `2^(e - 128)`. The two smallest results are subnormal in f32.
fn half_e8m0(e: u8) -> f32 {
    f32::from_bits(match e {
        0 | 1 => 0x0020_0000 << e,
        _ => u32::from(e - 1) << 23,
    })
}

/// Returns half of an unsigned e4m3 value (bias 7, top bit ignored). NaN (0x7f) reads as 0, as in ggml.
fn half_ue4m3(d: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(d >> 3) & 15, f32::from(d & 7));
    match (d, exponent) {
        (0 | 0x7f, _) => 0.0,
        (_, 0) => mantissa * power_of_two(-10),
        _ => (8.0 + mantissa) * power_of_two(exponent - 11),
    }
}

fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
}

/// Encodes as ggml's `quantize_row_mxfp4_ref`: the scale maps the largest magnitude to the exponent of 4. Elements take
/// the nearest value, in ties the lowest code.
///
/// The exponent comes from the f32's bits; ggml's `floor(log2f(amax))` may round up a few ulp below a power of two.
pub(super) fn encode_mxfp4(x: &[f32; 32]) -> [u8; 17] {
    let amax = signed_extreme(x).abs();
    let e = ((amax.to_bits() >> 23) as u8).saturating_sub(2);
    let d = half_e8m0(e);
    let mut block = [0; 17];
    block[0] = e;
    pack(4, 16, &x.map(|x| nearest(x, d)), &mut block[1..]);
    block
}

/// Encodes as ggml's `quantize_row_nvfp4_ref`: the scale of 16 elements is a sixth of their largest magnitude. Elements
/// take the nearest value.
pub(super) fn encode_nvfp4(x: &[f32; 64]) -> [u8; 36] {
    let (mut block, mut codes) = ([0; 36], [0; 64]);
    for (i, (x, codes)) in x
        .chunks_exact(16)
        .zip(codes.chunks_exact_mut(16))
        .enumerate()
    {
        block[i] = ue4m3(signed_extreme(x).abs() / 6.0);
        let d = half_ue4m3(block[i]);
        codes
            .iter_mut()
            .zip(x)
            .for_each(|(c, x)| *c = nearest(*x, d));
    }
    pack(4, 8, &codes, &mut block[4..]);
    block
}

/// Returns the nearest unsigned e4m3 value, at most 448; ties take the larger value.
fn ue4m3(x: f32) -> u8 {
    if x.is_nan() || x <= 0.0 {
        return 0;
    }
    let x = x.min(448.0);
    let exponent = (x.to_bits() >> 23) as i32 - 127 + 7;
    if exponent <= 0 {
        return ((x * 512.0 + 0.5) as u8).min(7);
    }
    // Three mantissa bits and the rounding bit. A carry increments the exponent.
    let bits = (x.to_bits() >> 19) & 0xf;
    let rounded = ((exponent as u32) << 3) + bits.div_ceil(2);
    rounded.min(0x7e) as u8
}

fn nearest(x: f32, d: f32) -> u8 {
    let error = |code: u8| (VALUES[usize::from(code)] * d - x).abs();
    (1..16).fold(0, |best, code| {
        if error(code) < error(best) {
            code
        } else {
            best
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn e8m0_is_a_power_of_two_down_to_the_subnormals() {
        assert_eq!(half_e8m0(0), f32::MIN_POSITIVE / 4.0);
        assert_eq!(half_e8m0(1), f32::MIN_POSITIVE / 2.0);
        assert_eq!(half_e8m0(2), f32::MIN_POSITIVE);
        assert_eq!(half_e8m0(128), 1.0);
        assert_eq!(half_e8m0(255), 2f32.powi(127));
    }

    #[test]
    fn ue4m3_has_subnormals_and_a_quiet_nan() {
        assert_eq!(half_ue4m3(0), 0.0);
        assert_eq!(half_ue4m3(1), 2f32.powi(-10));
        assert_eq!(half_ue4m3(0x08), 2f32.powi(-7));
        assert_eq!(half_ue4m3(0x38), 0.5);
        assert_eq!(half_ue4m3(0x7e), 224.0);
        assert_eq!(half_ue4m3(0x7f), 0.0);
    }

    #[test]
    fn every_ue4m3_is_the_nearest_to_itself_and_no_other() {
        for code in 0..=0x7e_u8 {
            assert_eq!(ue4m3(2.0 * half_ue4m3(code)), code);
        }
        assert_eq!([ue4m3(1000.0), ue4m3(-1.0), ue4m3(f32::NAN)], [0x7e, 0, 0]);
        assert_eq!(ue4m3(1.0625), ue4m3(1.125), "half way up");
        let mut x = [0.0; 64];
        x[..5].copy_from_slice(&[6.0, -4.0, 0.5, -1.5, 3.0]);
        x[16] = -12.0;
        let mut out = [f32::NAN; 64];
        decode_nvfp4(&encode_nvfp4(&x), &mut out);
        assert_eq!(out, x);
    }

    #[test]
    fn mxfp4_keeps_representable_blocks() {
        let mut x = [0.0; 32];
        x[..5].copy_from_slice(&[6.0, -4.0, 0.5, -1.5, 3.0]);
        let block = encode_mxfp4(&x);
        assert_eq!(block[0], 127);
        let mut out = [f32::NAN; 32];
        decode_mxfp4(&block, &mut out);
        assert_eq!(out, x);
    }
}
