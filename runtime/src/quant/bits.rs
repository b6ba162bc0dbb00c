use half::f16;

pub(super) fn decode_blocks<const BYTES: usize, const LEN: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES], &mut [f32; LEN]),
) {
    let (blocks, _) = bytes.as_chunks::<BYTES>();
    let (rows, _) = out.as_chunks_mut::<LEN>();
    for (block, row) in blocks.iter().zip(rows) {
        decode(block, row);
    }
}

pub(super) fn encode_blocks<const BYTES: usize, const LEN: usize>(
    values: &[f32],
    out: &mut [u8],
    encode: impl Fn(&[f32; LEN]) -> [u8; BYTES],
) {
    let (rows, _) = values.as_chunks::<LEN>();
    let (blocks, _) = out.as_chunks_mut::<BYTES>();
    for (block, row) in blocks.iter_mut().zip(rows) {
        *block = encode(row);
    }
}

pub(super) fn f16_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

pub(super) fn put_f16(block: &mut [u8], at: usize, value: f16) {
    block[at..at + 2].copy_from_slice(&value.to_le_bytes());
}

/// Unpacks codes of `bits` bits stored as planes.
///
/// The bytes form groups of `width`, each with `8 / bits` planes of `width` codes. Plane `p` is in bits `p·bits ..` of
/// every byte and has the group's elements `p·width ..`. All ggml formats use this layout, with different widths.
pub(super) fn unpack<const CODES: usize>(bits: u32, width: usize, bytes: &[u8]) -> [u8; CODES] {
    let planes = (8 / bits) as usize;
    debug_assert_eq!(bytes.len() * planes, CODES, "codes of {bits} bits");
    let mut codes = [0; CODES];
    let mask = (1u8 << bits) - 1;
    let groups = bytes
        .chunks_exact(width)
        .zip(codes.chunks_exact_mut(width * planes));
    for (group, codes) in groups {
        let mut shift = 0;
        for plane in codes.chunks_exact_mut(width) {
            for (code, byte) in plane.iter_mut().zip(group) {
                *code = (byte >> shift) & mask;
            }
            shift += bits;
        }
    }
    codes
}

/// Packs the low `bits` bits of every code: the inverse of [`unpack`].
pub(super) fn pack(bits: u32, width: usize, codes: &[u8], bytes: &mut [u8]) {
    let planes = (8 / bits) as usize;
    debug_assert_eq!(bytes.len() * planes, codes.len(), "codes of {bits} bits");
    let mask = (1u8 << bits) - 1;
    let groups = bytes
        .chunks_exact_mut(width)
        .zip(codes.chunks_exact(width * planes));
    for (group, codes) in groups {
        group.fill(0);
        let mut shift = 0;
        for plane in codes.chunks_exact(width) {
            for (byte, code) in group.iter_mut().zip(plane) {
                *byte |= (code & mask) << shift;
            }
            shift += bits;
        }
    }
}

/// Returns the element of largest magnitude, with its sign: the first if several are equal, 0 if empty.
pub(super) fn signed_extreme(values: &[f32]) -> f32 {
    values.iter().fold(
        0.0,
        |best: f32, &v| if v.abs() > best.abs() { v } else { best },
    )
}

pub(super) fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Returns the smallest f16 that is at least `value ≥ 0`.
pub(super) fn f16_not_below(value: f32) -> f16 {
    let nearest = f16::from_f32(value);
    if nearest.to_f32() < value {
        f16::from_bits(nearest.to_bits() + 1)
    } else {
        nearest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_are_strided_by_the_group_width() {
        let codes: [u8; 8] = unpack(2, 2, &[0b11_10_01_00, 0b00_01_10_11]);
        assert_eq!(codes, [0, 3, 1, 2, 2, 1, 3, 0]);
        let mut bytes = [0xff; 2];
        pack(2, 2, &codes, &mut bytes);
        assert_eq!(bytes, [0b11_10_01_00, 0b00_01_10_11]);
    }

    #[test]
    fn f16_not_below_rounds_up_only_when_needed() {
        assert_eq!(f16_not_below(1.0).to_f32(), 1.0);
        assert_eq!(
            f16_not_below(1.0 + f32::EPSILON).to_f32(),
            1.0 + 1.0 / 1024.0
        );
        assert_eq!(f16_not_below(0.0).to_bits(), 0);
        assert!(f16_not_below(1e9).to_f32().is_infinite());
    }
}
