//! The memory layout of every quantised type. [`tpc_runtime::quant`] describes the file's blocks.
//!
//! Sizes equal the file's, with three exceptions. tq1_0 takes 66 bytes per block instead of 54, because its codes are
//! stored in two bits. q8_1 and q8_k omit the sums, which decoding does not use. q1_0 and q2_0 store the head of a
//! whole step even if K ends within the step.
//!
//! Types with grids are stored as element values with the file's scales. Elements have 6 values (iq1, iq2) in 3 bits,
//! or 16 values (iq3) in 4 bits. These types are as fast as others, but larger than in the file: iq1 about twice, iq2
//! by a third to two thirds, iq3 by a quarter to two fifths.
#![expect(unsafe_code, reason = "the functions of a trait are unsafe")]

use super::codes::{
    Byte, Five, Four, Fp4, Indexed, Indexed3, Iq1, Iq2, Iq3, Iq3Wide, Iq4, Sign, Six, Table, Three,
    Two,
};
use super::scales::{
    E8m0, Each, F16, F16Min, K16Bytes, K16Nibbles, K16Six, K32, K32Six, Scaled, Ue4m3, Whole,
    WholeF32,
};
use super::{Codes, Layout, ROWS, Scales};
use crate::product::simd::Simd;
use half::f16;
use std::marker::PhantomData;
use tpc_ir::DType;
use tpc_runtime::quant::{GridBlock, grid_block};

/// A type with codes `C`, scales `S`, and code positions `F` in the file block.
pub(in crate::product) struct Stored<C, S, F>(PhantomData<(C, S, F)>);

pub(in crate::product) trait FileCodes {
    const BLOCK: usize;
    const BYTES: usize;
    fn codes(block: &[u8], out: &mut [u8; 256]);
}

impl<C: Codes, S: Scales, F: FileCodes> Layout for Stored<C, S, F> {
    type Codes = C;
    type Scales = S;
    const BLOCK: usize = F::BLOCK;
    const BYTES: usize = F::BYTES;
    #[inline(always)]
    fn codes(block: &[u8], out: &mut [u8; 256]) {
        F::codes(block, out);
    }
}

/// Appends the `BITS`-bit fields of each run of `width` bytes, lowest first, at bit `to` of the codes.
#[inline(always)]
fn planes<const BITS: u32>(bytes: &[u8], width: usize, to: u32, out: &mut [u8]) {
    let mask = (1_u8 << BITS) - 1;
    let fields = (8 / BITS) as usize;
    let runs = bytes.chunks_exact(width);
    for (run, out) in runs.zip(out.chunks_exact_mut(width * fields)) {
        let mut shift = 0;
        for plane in out.chunks_exact_mut(width) {
            for (code, byte) in plane.iter_mut().zip(run) {
                *code |= ((byte >> shift) & mask) << to;
            }
            shift += BITS;
        }
    }
}

/// The nibbles of 32 elements in one run, after `FROM` bytes of a block of `BYTES`.
pub(in crate::product) struct Nibbles32<const BYTES: usize, const FROM: usize>;

impl<const BYTES: usize, const FROM: usize> FileCodes for Nibbles32<BYTES, FROM> {
    const BLOCK: usize = 32;
    const BYTES: usize = BYTES;
    #[inline(always)]
    fn codes(block: &[u8], out: &mut [u8; 256]) {
        planes::<4>(&block[FROM..FROM + 16], 16, 0, &mut out[..32]);
    }
}

/// Same as [`Nibbles32`], with four bytes of fifth bits before the nibbles.
pub(in crate::product) struct Five32<const BYTES: usize, const FROM: usize>;

impl<const BYTES: usize, const FROM: usize> FileCodes for Five32<BYTES, FROM> {
    const BLOCK: usize = 32;
    const BYTES: usize = BYTES;
    #[inline(always)]
    fn codes(block: &[u8], out: &mut [u8; 256]) {
        planes::<4>(&block[FROM + 4..FROM + 20], 16, 0, &mut out[..32]);
        for (j, code) in out[..32].iter_mut().enumerate() {
            *code |= (block[FROM + j / 8] >> (j % 8) & 1) << 4;
        }
    }
}

/// `BLOCK` codes of one byte each, after `FROM` bytes of a block of `BYTES`.
pub(in crate::product) struct Bytes<const BLOCK: usize, const BYTES: usize, const FROM: usize>;

impl<const BLOCK: usize, const BYTES: usize, const FROM: usize> FileCodes
    for Bytes<BLOCK, BYTES, FROM>
{
    const BLOCK: usize = BLOCK;
    const BYTES: usize = BYTES;
    #[inline(always)]
    fn codes(block: &[u8], out: &mut [u8; 256]) {
        out[..BLOCK].copy_from_slice(&block[FROM..FROM + BLOCK]);
    }
}

pub(in crate::product) trait Grid {
    const DTYPE: DType;
    type Table: Table;
    const UNIT: f32;
    const SUB: usize;
}

/// Decodes a block to integers. Malformed bytes give zeros.
fn grid<G: Grid>(block: &[u8]) -> GridBlock {
    grid_block(G::DTYPE, block).unwrap_or(GridBlock {
        d: f16::ZERO,
        steps: [0; 16],
        unit: G::UNIT,
        values: [0; 256],
    })
}

impl<G: Grid> FileCodes for GridOf<G> {
    const BLOCK: usize = 256;
    const BYTES: usize = G::DTYPE.block_bytes() as usize;
    fn codes(block: &[u8], out: &mut [u8; 256]) {
        let offset = 1_i16 << G::Table::OFFSET;
        for (out, value) in out.iter_mut().zip(grid::<G>(block).values) {
            let stored = i16::from(value) + offset;
            let mut table = G::Table::VALUES.iter();
            let index = table.position(|&v| i16::from(v) == stored);
            *out = index.unwrap_or(0) as u8;
        }
    }
}

/// The layout of types with grids: an f16 per 256 elements, stored after the steps, and a small odd number per 16 or
/// 32.
pub(in crate::product) struct GridOf<G>(PhantomData<G>);

impl<G: Grid> Scales for GridOf<G> {
    const SUB: usize = G::SUB;
    const MIN: bool = false;
    const PER_BLOCK: bool = false;
    const HEAD: usize = 256 / G::SUB * ROWS;
    const BEHIND: usize = 32;
    type Head<S: Simd> = Scaled<S::F>;
    fn put(block: &[u8], _: usize, row: usize, head: &mut [u8], behind: &mut [u8]) {
        let grid = grid::<G>(block);
        for (j, steps) in grid.steps.chunks_exact(G::SUB / 16).enumerate() {
            head[ROWS * j + row] = steps[0];
        }
        behind[2 * row..2 * row + 2].copy_from_slice(&grid.d.to_le_bytes());
    }
    #[inline(always)]
    unsafe fn head<S: Simd>(head: *const u8, behind: *const u8) -> Scaled<S::F> {
        // SAFETY: caller's contract.
        unsafe {
            let d = S::fmul(S::f16x16(behind), S::fsplat(G::UNIT));
            Scaled { d, head }
        }
    }
    #[inline(always)]
    unsafe fn scale<S: Simd>(head: &Scaled<S::F>, b: usize, j: usize) -> S::F {
        // SAFETY: caller's contract.
        unsafe { head.times_u8::<S>(32 / G::SUB * b + j) }
    }
    #[inline(always)]
    unsafe fn min<S: Simd>(_: &Scaled<S::F>, _: usize, _: usize) -> S::F {
        // SAFETY: caller's contract.
        unsafe { S::fsplat(0.0) }
    }
}

macro_rules! grids {
    ($($(#[$doc:meta])* $name:ident: $dtype:ident, $table:ty, $unit:literal, $sub:literal;)*) => {$(
        $(#[$doc])*
        pub(in crate::product) struct $name;

        impl Grid for $name {
            const DTYPE: DType = DType::$dtype;
            type Table = $table;
            const UNIT: f32 = $unit;
            const SUB: usize = $sub;
        }
    )*};
}

grids! {
    GridIq1S: Iq1S, Iq1, 0.125, 32;
    GridIq1M: Iq1M, Iq1, 0.125, 16;
    GridIq2Xxs: Iq2Xxs, Iq2, 0.125, 32;
    GridIq2Xs: Iq2Xs, Iq2, 0.125, 16;
    GridIq2S: Iq2S, Iq2, 0.125, 16;
    GridIq3Xxs: Iq3Xxs, Iq3Wide, 0.25, 32;
    GridIq3S: Iq3S, Iq3, 1.0, 32;
}

/// Defines types with their own code positions: name, elements and bytes of a block, and an expression that reads the
/// codes.
macro_rules! file_codes {
    ($($(#[$doc:meta])* $name:ident: $block:literal in $bytes:literal, |$b:ident, $out:ident| $codes:block)*) => {$(
        $(#[$doc])*
        pub(in crate::product) struct $name;

        impl FileCodes for $name {
            const BLOCK: usize = $block;
            const BYTES: usize = $bytes;
            #[inline(always)]
            fn codes($b: &[u8], $out: &mut [u8; 256]) $codes
        }
    )*};
}

file_codes! {
    CodesQ2K: 256 in 84, |block, out| {
        planes::<2>(&block[16..80], 32, 0, out);
    }
    CodesQ3K: 256 in 110, |block, out| {
        planes::<2>(&block[32..96], 32, 0, out);
        planes::<1>(&block[..32], 32, 2, out);
    }
    CodesQ4K: 256 in 144, |block, out| {
        planes::<4>(&block[16..], 32, 0, out);
    }
    CodesQ5K: 256 in 176, |block, out| {
        planes::<4>(&block[48..], 32, 0, out);
        planes::<1>(&block[16..48], 32, 4, out);
    }
    CodesQ6K: 256 in 210, |block, out| {
        planes::<4>(&block[..128], 64, 0, out);
        planes::<2>(&block[128..192], 32, 4, out);
    }
    CodesIq4Xs: 256 in 136, |block, out| {
        planes::<4>(&block[8..], 16, 0, out);
    }
    CodesNvfp4: 64 in 36, |block, out| {
        planes::<4>(&block[4..], 8, 0, &mut out[..64]);
    }
    /// tq1_0: base-three digits.
    CodesTq1: 256 in 54, |block, out| {
        let (fives, fours) = out.split_at_mut(240);
        let (wide, narrow) = fives.split_at_mut(160);
        for (bytes, out) in [(&block[..32], wide), (&block[32..48], narrow), (&block[48..52], fours)] {
            let mut power = 1_u8;
            for out in out.chunks_exact_mut(bytes.len()) {
                for (out, byte) in out.iter_mut().zip(bytes) {
                    *out = ((u16::from(byte.wrapping_mul(power)) * 3) >> 8) as u8;
                }
                power = power.wrapping_mul(3);
            }
        }
    }
    CodesTq2: 256 in 66, |block, out| {
        planes::<2>(&block[..64], 32, 0, out);
    }
    CodesQ1: 128 in 18, |block, out| {
        for (bits, out) in block[2..].iter().zip(out.chunks_exact_mut(8)) {
            for (j, out) in out.iter_mut().enumerate() {
                *out = bits >> j & 1;
            }
        }
    }
    CodesQ2: 64 in 18, |block, out| {
        for (pairs, out) in block[2..].iter().zip(out.chunks_exact_mut(4)) {
            for (j, out) in out.iter_mut().enumerate() {
                *out = pairs >> (2 * j) & 3;
            }
        }
    }
}

pub(in crate::product) type Q4_0 = Stored<Four<3>, F16<0>, Nibbles32<18, 2>>;
pub(in crate::product) type Q4_1 = Stored<Four<-1>, F16Min, Nibbles32<20, 4>>;
pub(in crate::product) type Q5_0 = Stored<Five<4>, F16<0>, Five32<22, 2>>;
pub(in crate::product) type Q5_1 = Stored<Five<-1>, F16Min, Five32<24, 4>>;
pub(in crate::product) type Q8_0 = Stored<Byte, F16<0>, Bytes<32, 34, 2>>;
pub(in crate::product) type Q8_1 = Stored<Byte, F16<0>, Bytes<32, 36, 4>>;
pub(in crate::product) type Q2K = Stored<Two<-1>, K16Nibbles, CodesQ2K>;
pub(in crate::product) type Q3K = Stored<Three, K16Six, CodesQ3K>;
pub(in crate::product) type Q4K = Stored<Four<-1>, K32, CodesQ4K>;
pub(in crate::product) type Q5K = Stored<Five<-1>, K32, CodesQ5K>;
pub(in crate::product) type Q6K = Stored<Six, K16Bytes, CodesQ6K>;
pub(in crate::product) type Q8K = Stored<Byte, WholeF32, Bytes<256, 292, 4>>;
pub(in crate::product) type Iq4Nl = Stored<Indexed<Iq4>, F16<0>, Nibbles32<18, 2>>;
pub(in crate::product) type Iq4Xs = Stored<Indexed<Iq4>, K32Six, CodesIq4Xs>;
pub(in crate::product) type Mxfp4 = Stored<Indexed<Fp4>, E8m0, Nibbles32<17, 1>>;
pub(in crate::product) type Nvfp4 = Stored<Indexed<Fp4>, Ue4m3, CodesNvfp4>;
pub(in crate::product) type Tq1_0 = Stored<Two<0>, Whole<52>, CodesTq1>;
pub(in crate::product) type Tq2_0 = Stored<Two<0>, Whole<64>, CodesTq2>;
pub(in crate::product) type Q1_0 = Stored<Sign, Each<128>, CodesQ1>;
pub(in crate::product) type Q2_0 = Stored<Two<0>, Each<64>, CodesQ2>;

type Grid3<G> = Stored<Indexed3<<G as Grid>::Table>, GridOf<G>, GridOf<G>>;
type Grid4<G> = Stored<Indexed<<G as Grid>::Table>, GridOf<G>, GridOf<G>>;
pub(in crate::product) type Iq1S = Grid3<GridIq1S>;
pub(in crate::product) type Iq1M = Grid3<GridIq1M>;
pub(in crate::product) type Iq2Xxs = Grid3<GridIq2Xxs>;
pub(in crate::product) type Iq2Xs = Grid3<GridIq2Xs>;
pub(in crate::product) type Iq2S = Grid3<GridIq2S>;
pub(in crate::product) type Iq3Xxs = Grid4<GridIq3Xxs>;
pub(in crate::product) type Iq3S = Grid4<GridIq3S>;
