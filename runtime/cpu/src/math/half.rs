//! Branch-free conversions between f32 and 16-bit formats, ties to even. Loops over them vectorise.

/// Converts f16 to f32, exactly.
#[inline(always)]
pub(crate) fn f16_to_f32(h: u16) -> f32 {
    let h = u32::from(h);
    let magnitude = (h & 0x7fff) << 13;
    // Exponent biases differ by 112. Infinities and NaNs get the largest exponent.
    let normal = magnitude + (112 << 23);
    let special = magnitude | 0x7f80_0000;
    // Subnormals: the mantissa under 2⁻¹⁴, minus 2⁻¹⁴.
    let subnormal = f32::from_bits(magnitude + (113 << 23)) - f32::from_bits(113 << 23);
    let exponent = h & 0x7c00;
    let bits = if exponent == 0x7c00 { special } else { normal };
    let bits = if exponent == 0 {
        subnormal.to_bits()
    } else {
        bits
    };
    f32::from_bits(bits | (h & 0x8000) << 16)
}

/// Converts f32 to the nearest f16; NaN to a quiet NaN.
#[inline(always)]
pub(crate) fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Rounds off 13 bits: adds half of the last kept bit, minus 1 if this bit is even.
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // Subnormals: adding 1/2 rounds the sum at 2⁻²⁴.
    let subnormal = (f32::from_bits(magnitude) + 0.5)
        .to_bits()
        .wrapping_sub(126 << 23);
    let h = if magnitude < 113 << 23 {
        subnormal
    } else {
        normal
    };
    let h = if magnitude >= 143 << 23 { 0x7c00 } else { h };
    let h = if magnitude > 0x7f80_0000 { 0x7e00 } else { h };
    (h | bits >> 16 & 0x8000) as u16
}

#[inline(always)]
pub(crate) fn through_f16(x: f32) -> f32 {
    f16_to_f32(f32_to_f16(x))
}

/// Converts bf16 to f32, exactly.
#[inline(always)]
pub(crate) fn bf16_to_f32(b: u16) -> f32 {
    f32::from_bits(u32::from(b) << 16)
}

/// Converts f32 to the nearest bf16; NaN to a quiet NaN.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    let nan = bits >> 16 | 0x40;
    let is_nan = bits & 0x7fff_ffff > 0x7f80_0000;
    (if is_nan { nan } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::half::{bf16, f16};

    #[test]
    fn every_f16_and_what_lies_between() {
        for h in 0..=u16::MAX {
            let (found, wanted) = (f16_to_f32(h), f16::from_bits(h).to_f32());
            assert!(found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan());
            if wanted.is_nan() {
                assert!(f16::from_bits(f32_to_f16(wanted)).is_nan());
                continue;
            }
            for offset in [
                -0x1001_i32,
                -0x1000,
                -0xfff,
                -1,
                0,
                1,
                0xfff,
                0x1000,
                0x1001,
            ] {
                let x = f32::from_bits(wanted.to_bits().wrapping_add_signed(offset));
                if x.is_nan() {
                    continue;
                }
                assert_eq!(f32_to_f16(x), f16::from_f32(x).to_bits(), "{x:e}");
            }
        }
    }

    #[test]
    fn bf16_rounds_to_even() {
        for b in 0..=u16::MAX {
            for low in [0_u32, 1, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let x = f32::from_bits(u32::from(b) << 16 | low);
                let wanted = bf16::from_f32(x);
                let found = bf16::from_bits(f32_to_bf16(x));
                assert!(found.to_bits() == wanted.to_bits() || found.is_nan() && wanted.is_nan());
                assert!(wanted.is_nan() || bf16_to_f32(f32_to_bf16(x)) == wanted.to_f32());
            }
        }
    }
}
