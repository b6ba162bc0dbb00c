//! Little-endian formats without blocks: f32, f16, bf16, f8_e4m3, f64 and the signed integers.
//!
//! f16 is IEEE binary16; bf16 is the upper half of an f32; f8_e4m3 is OCP FP8 E4M3 (revision 1.1), which has NaN but no
//! infinities. Narrowing rounds to nearest, ties to even; f8_e4m3 saturates at ±448.

use half::{bf16, f16};

pub(super) fn decode_f32(block: &[u8; 4], out: &mut [f32; 1]) {
    *out = [f32::from_le_bytes(*block)];
}

pub(super) fn decode_f16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [f16::from_le_bytes(*block).to_f32()];
}

pub(super) fn decode_bf16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [f32::from_bits(u32::from(u16::from_le_bytes(*block)) << 16)];
}

pub(super) fn decode_f8_e4m3(&[bits]: &[u8; 1], out: &mut [f32; 1]) {
    let (exponent, mantissa) = (i32::from((bits >> 3) & 15), f32::from(bits & 7));
    let magnitude = match (bits & 0x7f, exponent) {
        (0x7f, _) => f32::NAN,
        (_, 0) => mantissa * power_of_two(-9),
        _ => (8.0 + mantissa) * power_of_two(exponent - 10),
    };
    *out = [if bits < 0x80 { magnitude } else { -magnitude }];
}

const fn power_of_two(exponent: i32) -> f32 {
    f32::from_bits(((127 + exponent) as u32) << 23)
}

pub(super) fn decode_f64(block: &[u8; 8], out: &mut [f32; 1]) {
    *out = [f64::from_le_bytes(*block) as f32];
}

pub(super) fn decode_i8(block: &[u8; 1], out: &mut [f32; 1]) {
    *out = [f32::from(i8::from_le_bytes(*block))];
}

pub(super) fn decode_i16(block: &[u8; 2], out: &mut [f32; 1]) {
    *out = [f32::from(i16::from_le_bytes(*block))];
}

pub(super) fn decode_i32(block: &[u8; 4], out: &mut [f32; 1]) {
    *out = [i32::from_le_bytes(*block) as f32];
}

pub(super) fn decode_i64(block: &[u8; 8], out: &mut [f32; 1]) {
    *out = [i64::from_le_bytes(*block) as f32];
}

pub(super) fn encode_f32(&[value]: &[f32; 1]) -> [u8; 4] {
    value.to_le_bytes()
}

pub(super) fn encode_f16(&[value]: &[f32; 1]) -> [u8; 2] {
    f16::from_f32(value).to_le_bytes()
}

pub(super) fn encode_bf16(&[value]: &[f32; 1]) -> [u8; 2] {
    bf16::from_f32(value).to_le_bytes()
}

pub(super) fn encode_f8_e4m3(&[value]: &[f32; 1]) -> [u8; 1] {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    let magnitude = value.abs();
    if value.is_nan() {
        return [0x7f];
    }
    if magnitude >= 448.0 {
        return [sign | 0x7e];
    }
    // The exponent of the smallest normal number is -6. A step is an eighth of the power of two.
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(-6);
    let steps = (magnitude / power_of_two(exponent - 3)).round_ties_even() as u8;
    // Rounding up to 16 steps carries into the exponent. Subnormal numbers have at most 8 steps.
    [sign | ((((exponent + 6) as u8) << 3) + steps)]
}

#[cfg(test)]
mod tests {
    use super::super::{dequantise, quantise};
    use tpc_ir::dtype::DType;

    #[track_caller]
    fn check(dtype: DType, bytes: &[u8], expect: &[f32]) {
        let mut out = vec![f32::NAN; expect.len()];
        dequantise(dtype, bytes, &mut out).expect("whole elements");
        assert_eq!(out, expect);
    }

    #[test]
    fn elements_are_little_endian() {
        check(DType::F32, &[0, 0, 0xc0, 0x3f, 0, 0, 0, 0x80], &[1.5, -0.0]);
        check(
            DType::F16,
            &[0x00, 0x3e, 0x01, 0x00],
            &[1.5, 5.960_464_5e-8],
        );
        check(
            DType::Bf16,
            &[0xc0, 0x3f, 0x80, 0xff],
            &[1.5, f32::NEG_INFINITY],
        );
        check(DType::F64, &(1.0f64 + f64::EPSILON).to_le_bytes(), &[1.0]);
        check(DType::I8, &[0x80, 0x7f], &[-128.0, 127.0]);
        check(DType::I16, &[0xfe, 0xff], &[-2.0]);
        check(DType::I32, &16_777_217i32.to_le_bytes(), &[16_777_216.0]);
        check(DType::I64, &(-3i64).to_le_bytes(), &[-3.0]);
    }

    #[test]
    fn every_f8_is_encoded_to_itself() {
        let all: Vec<u8> = (0..=255).collect();
        let mut values = vec![0.0; 256];
        dequantise(DType::F8E4M3, &all, &mut values).expect("whole elements");
        // From revision 1.1 of the OCP specification, section 5.1.
        let known = [0.0, 0.001_953_125, 0.013_671_875, 0.015_625, 1.0, 448.0];
        let bits: [usize; 6] = [0x00, 0x01, 0x07, 0x08, 0x38, 0x7e];
        assert_eq!(bits.map(|b| values[b]), known);
        assert_eq!(values[0xb8], -1.0);
        assert!(values[0x7f].is_nan() && values[0xff].is_nan());
        let mut back = Vec::new();
        quantise(DType::F8E4M3, &values, &mut back).expect("whole elements");
        // NaN loses its sign.
        let expected: Vec<u8> = all
            .iter()
            .map(|&b| if b == 0xff { 0x7f } else { b })
            .collect();
        assert_eq!(back, expected);
    }

    #[test]
    fn f8_rounds_to_the_nearest_and_saturates() {
        let mut out = Vec::new();
        // Ties go to even: 17 lies between 16 and 18, 19 between 18 and 20.
        let values = [17.0, 19.0, 15.9, 465.0, f32::INFINITY, -1e9, 0.0009, 0.001];
        quantise(DType::F8E4M3, &values, &mut out).expect("whole elements");
        let mut read = [0.0; 8];
        dequantise(DType::F8E4M3, &out, &mut read).expect("whole elements");
        let least = 0.001_953_125;
        assert_eq!(read, [16.0, 20.0, 16.0, 448.0, 448.0, -448.0, 0.0, least]);
    }

    #[test]
    fn narrowing_rounds_ties_to_even() {
        let mut out = Vec::new();
        quantise(
            DType::Bf16,
            &[f32::from_bits(0x3f80_8000), f32::from_bits(0x3f81_8000)],
            &mut out,
        )
        .expect("whole elements");
        assert_eq!(out, [0x80, 0x3f, 0x82, 0x3f]);
        out.clear();
        quantise(
            DType::F16,
            &[1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0, 1e6],
            &mut out,
        )
        .expect("whole elements");
        assert_eq!(out, [0x00, 0x3c, 0x02, 0x3c, 0x00, 0x7c]);
    }
}
