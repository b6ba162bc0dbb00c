//! Little-endian formats without blocks: f32, f16, bf16, f64 and the signed integers.
//!
//! f16 is IEEE binary16; bf16 is the upper half of an f32. Narrowing rounds to nearest, ties to even.

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
