//! Formats whose blocks index grids: iq1, iq2, iq3.
//!
//! A block is 256 elements with an f16 scale `d`. Each 8 elements (4 in iq3) are a row of a grid ([`super::grids`]),
//! and each 16 or 32 have a small scale `s`. An element's value is `d·(2·s + 1)·unit·v` with a signed integer `v`:
//!
//! | format  | `v`                       | unit | scale for |
//! |---------|---------------------------|------|-----------|
//! | iq1_s   | `8·{-1, 0, 1} ± 1`        | 1/8  | 32        |
//! | iq1_m   | the same                  | 1/8  | 16        |
//! | iq2_xxs | `±{8, 25, 43}`            | 1/8  | 32        |
//! | iq2_xs  | the same                  | 1/8  | 16        |
//! | iq2_s   | the same                  | 1/8  | 16        |
//! | iq3_xxs | `±{4, 12, 20, …, 52, 62}` | 1/4  | 32        |
//! | iq3_s   | `±{1, 3, …, 15}`          | 1    | 32        |
//!
//! ggml computes `d·(0.5 + s)` with twice the unit, and adds 1/8 to the grid of iq1. The bits are the same, because `d`
//! times a small integer is exact.
//!
//! Layouts (ggml's `block_iq1_s` and its siblings), byte offsets in brackets; integers are little-endian:
//!
//! | format  | layout |
//! |---------|--------|
//! | iq1_s   | `d` \[0\] `qs` \[2..34\] `qh` u16 \[34..50\]: for each 32, bits 3·l high bits of row `l`, 12–14 `s`, 15 sign of the `± 1` |
//! | iq1_m   | `qs` \[0..32\] `qh` \[32..48\]: a nibble a row, 3 high bits and the sign of the `± 1`; `scales` u16 \[48..56\]: bits 3·j `s` of four 16s, 12–15 a nibble of `d` |
//! | iq2_xxs | `d` \[0\], then for each 32 u32 of four rows and u32 of signs, 7 bits a row, and `s` in bits 28–31 |
//! | iq2_xs  | `d` \[0\] `qs` u16 \[2..66\]: row in bits 0–8, signs in 9–15; `scales` \[66..74\] nibbles |
//! | iq2_s   | `d` \[0\] `qs` \[2..34\] signs \[34..66\] `qh` \[66..74\]: 2 high bits a row; `scales` \[74..82\] nibbles |
//! | iq3_xxs | `d` \[0\] `qs` \[2..66\], then for each 32 u32 of signs, 7 bits for 8 elements, and `s` in bits 28–31 |
//! | iq3_s   | `d` \[0\] `qs` \[2..66\] `qh` \[66..74\]: a high bit a row; signs \[74..106\] `scales` \[106..110\] nibbles |
//!
//! Seven signs determine the eighth: the number of minus signs is even.

use super::grids::{IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS};
use half::f16;
use tpc_ir::dtype::DType;

const LEN: usize = 256;

/// A block as integers: element `i` is `d·steps[i / 16]·unit·values[i]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GridBlock {
    /// Block scale.
    pub d: f16,
    /// `2·s + 1` per 16 elements.
    pub steps: [u8; 16],
    /// Factor of all values, a power of two.
    pub unit: f32,
    /// Elements before scaling.
    pub values: [i8; LEN],
}

/// Returns a block's integers; `None` if the type has no grid or the block's length is wrong.
pub fn grid_block(dtype: DType, block: &[u8]) -> Option<GridBlock> {
    if block.len() as u64 != dtype.block_bytes() {
        return None;
    }
    let mut out = GridBlock {
        d: f16::from_le_bytes([block[0], block[1]]),
        steps: [0; 16],
        unit: 0.125,
        values: [0; LEN],
    };
    match dtype {
        DType::Iq1S => iq1_s(block, &mut out),
        DType::Iq1M => iq1_m(block, &mut out),
        DType::Iq2Xxs => iq2_xxs(block, &mut out),
        DType::Iq2Xs => iq2_xs(block, &mut out),
        DType::Iq2S => iq2_s(block, &mut out),
        DType::Iq3Xxs => iq3_xxs(block, &mut out),
        DType::Iq3S => iq3_s(block, &mut out),
        _ => return None,
    }
    Some(out)
}

pub(super) fn decode(dtype: DType, block: &[u8], out: &mut [f32; LEN]) {
    let Some(grid) = grid_block(dtype, block) else {
        return;
    };
    let d = grid.d.to_f32();
    let groups = out
        .chunks_exact_mut(16)
        .zip(grid.values.chunks_exact(16))
        .zip(grid.steps);
    for ((out, values), step) in groups {
        let scale = d * f32::from(step) * grid.unit;
        for (out, &v) in out.iter_mut().zip(values) {
            *out = scale * f32::from(v);
        }
    }
}

fn u16_at(block: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([block[at], block[at + 1]]))
}

fn u32_at(block: &[u8], at: usize) -> usize {
    u16_at(block, at) | u16_at(block, at + 2) << 16
}

fn nibbles(block: &[u8], at: usize, per: usize, steps: &mut [u8; 16]) {
    for (j, step) in steps.iter_mut().enumerate() {
        let n = j / per;
        let s = (block[at + n / 2] >> (4 * (n % 2))) & 15;
        *step = 2 * s + 1;
    }
}

/// Adds the eighth sign, which makes the number of minus signs even.
fn eight(seven: usize) -> usize {
    let seven = seven & 127;
    seven | ((seven.count_ones() as usize & 1) << 7)
}

fn row2(row: u16, signs: usize, out: &mut [i8]) {
    for (j, out) in out.iter_mut().enumerate() {
        let v = [8, 25, 43, 0][usize::from(row >> (2 * j)) & 3];
        *out = if signs >> j & 1 == 1 { -v } else { v };
    }
}

fn row3(row: u16, values: &[i8; 8], signs: usize, out: &mut [i8]) {
    for (j, out) in out.iter_mut().enumerate() {
        let v = values[usize::from(row >> (4 * j)) & 7];
        *out = if signs >> j & 1 == 1 { -v } else { v };
    }
}

/// Decodes an iq1 row of eight elements, in eighths, plus `delta`.
fn row1(row: u16, delta: i8, out: &mut [i8]) {
    for (j, out) in out.iter_mut().enumerate() {
        let step = (row >> (2 * j) & 3) as i8;
        *out = 8 * (step - 1) + delta;
    }
}

fn iq1_s(block: &[u8], out: &mut GridBlock) {
    for (i, out_values) in out.values.chunks_exact_mut(32).enumerate() {
        let qh = u16_at(block, 34 + 2 * i);
        out.steps[2 * i..2 * i + 2].fill((2 * (qh >> 12 & 7) + 1) as u8);
        let delta = if qh & 0x8000 == 0 { 1 } else { -1 };
        for (l, values) in out_values.chunks_exact_mut(8).enumerate() {
            let row = usize::from(block[2 + 4 * i + l]) | (qh >> (3 * l) & 7) << 8;
            row1(IQ1_S[row], delta, values);
        }
    }
}

fn iq1_m(block: &[u8], out: &mut GridBlock) {
    let scales: [usize; 4] = std::array::from_fn(|n| u16_at(block, 48 + 2 * n));
    let d = (0..4).fold(0, |d, n| d | (scales[n] >> 12) << (4 * n));
    out.d = f16::from_bits(d as u16);
    for (j, step) in out.steps.iter_mut().enumerate() {
        *step = (2 * (scales[j / 4] >> (3 * (j % 4)) & 7) + 1) as u8;
    }
    for (n, values) in out.values.chunks_exact_mut(8).enumerate() {
        let qh = usize::from(block[32 + n / 2] >> (4 * (n % 2)));
        let row = usize::from(block[n]) | (qh & 7) << 8;
        let delta = if qh & 8 == 0 { 1 } else { -1 };
        row1(IQ1_S[row], delta, values);
    }
}

fn iq2_xxs(block: &[u8], out: &mut GridBlock) {
    for (i, values) in out.values.chunks_exact_mut(32).enumerate() {
        let aux = u32_at(block, 2 + 8 * i + 4);
        out.steps[2 * i..2 * i + 2].fill((2 * (aux >> 28) + 1) as u8);
        for (l, values) in values.chunks_exact_mut(8).enumerate() {
            let row = IQ2_XXS[usize::from(block[2 + 8 * i + l])];
            row2(row, eight(aux >> (7 * l)), values);
        }
    }
}

fn iq2_xs(block: &[u8], out: &mut GridBlock) {
    nibbles(block, 66, 1, &mut out.steps);
    for (n, values) in out.values.chunks_exact_mut(8).enumerate() {
        let q = u16_at(block, 2 + 2 * n);
        row2(IQ2_XS[q & 511], eight(q >> 9), values);
    }
}

fn iq2_s(block: &[u8], out: &mut GridBlock) {
    nibbles(block, 74, 1, &mut out.steps);
    for (n, values) in out.values.chunks_exact_mut(8).enumerate() {
        let high = usize::from(block[66 + n / 4] >> (2 * (n % 4)) & 3);
        let row = usize::from(block[2 + n]) | high << 8;
        row2(IQ2_S[row], usize::from(block[34 + n]), values);
    }
}

fn iq3_xxs(block: &[u8], out: &mut GridBlock) {
    out.unit = 0.25;
    for (i, values) in out.values.chunks_exact_mut(32).enumerate() {
        let aux = u32_at(block, 66 + 4 * i);
        out.steps[2 * i..2 * i + 2].fill((2 * (aux >> 28) + 1) as u8);
        for (l, values) in values.chunks_exact_mut(4).enumerate() {
            let row = IQ3_XXS[usize::from(block[2 + 8 * i + l])];
            let signs = eight(aux >> (7 * (l / 2))) >> (4 * (l % 2));
            row3(row, &[4, 12, 20, 28, 36, 44, 52, 62], signs, values);
        }
    }
}

fn iq3_s(block: &[u8], out: &mut GridBlock) {
    out.unit = 1.0;
    nibbles(block, 106, 2, &mut out.steps);
    for (n, values) in out.values.chunks_exact_mut(4).enumerate() {
        let high = usize::from(block[66 + n / 8] >> (n % 8) & 1);
        let row = IQ3_S[usize::from(block[2 + n]) | high << 8];
        let signs = usize::from(block[74 + n / 2] >> (4 * (n % 2)));
        row3(row, &[1, 3, 5, 7, 9, 11, 13, 15], signs, values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random blocks in hexadecimal, and FNV-1a of the little-endian bytes of their decoded values, from the Python
    /// package `gguf` 0.19.
    const ANSWERS: [(DType, &str, u64); 7] = [
        (
            DType::Iq1S,
            "ec35e5f1a94106a0956a26afbccdafe562f90a945f5693c642276ad5ab2da7394551370e99b2d74c3427fa48d732a1df70ac",
            0x4ac4c8bc06cc7965,
        ),
        (
            DType::Iq1M,
            "26115901dd06f27f8f063cd25e19a621f9bd0ccc21397c1ec795ca7748dc03d17a88934d85527357a2e64647f03e2fb81fc23fe192558e3d",
            0xae0cff7c8f9b15e7,
        ),
        (
            DType::Iq2Xxs,
            "ec35f0711ef7677a1f132a818d882195a100b28d6b236b82481bd9fe630dc3ce3be4ebcab72f45b35223479f6e794d57037e2cfde9e15a7789781e3721a557d8e5a7",
            0x1c5f711102346d81,
        ),
        (
            DType::Iq2Xs,
            "ec3581db3f65cf9c1bdc5d1d8fc83f0b0bb4db71be572209851d3d24f4c0cf83fe4363f82f4759778955f6ced681cbea7179ced2c8f814a13472ff70ce369d8385452a44f318337f08cd",
            0xcf0c3d4c459c4f98,
        ),
        (
            DType::Iq2S,
            "ec355d3f83bc45fee9ee0403a79be118544441317c9311f85e0429b19f7ec0e156f65a3322e791b880ee995e3f0d307d2fbaf400693a179e0d027ed4e58be7a9ebc28a271d43a78855638144eb6603f7b272",
            0x83bf5cf9b73d1261,
        ),
        (
            DType::Iq3Xxs,
            "ec35ac2f88a68182869793f0aad6ded8116e3ab51681c4a374fec70a68b3e4bdc92b387987416c17ec90963ec766888ab4b80eba7c5cfd81121bea9cee1810dfd5169faf26cd7b5c30c8aba44d972299e8c7b41b9a1d2b0f180600a974d63b633220",
            0x2e6bbe9f7d4c8984,
        ),
        (
            DType::Iq3S,
            "ec35b2522c49c4394c7d73265b6aaf61b288fbd0aecfa766616223611e764c93aa388ffabd0a6a6412b209971e2d827076f7e49ab8fa197271be53a3442b128cdad72bad0f8aeef42a0b9a26d74fc78f2562b8701097a55b5510543d27ed600de3200a6749307fd37899c118819a",
            0x8d9f61f308de0b0c,
        ),
    ];

    #[test]
    fn decoded_blocks_are_known() {
        for (dtype, hex, hash) in ANSWERS {
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("two digits"))
                .collect();
            let mut out = [f32::NAN; LEN];
            decode(dtype, &bytes, &mut out);
            let found = out
                .iter()
                .flat_map(|v| v.to_le_bytes())
                .fold(0xcbf2_9ce4_8422_2325_u64, |h, b| {
                    (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
                });
            assert_eq!(found, hash, "{dtype}: {:?} …", &out[..8]);
        }
    }

    #[test]
    fn other_types_and_lengths_have_no_grid() {
        assert_eq!(grid_block(DType::Q8_0, &[0; 34]), None);
        assert_eq!(grid_block(DType::Iq2S, &[0; 81]), None);
    }
}
