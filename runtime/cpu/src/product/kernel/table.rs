//! Product functions per type and instruction set.

use super::block::Kind;
use super::decode::{self, Decode};
use super::float::{self, Bf16, Element, F16, F32, Floats};
use super::tile::{self, Multiply, Of};
use super::unpack::{self, Unpack};
use super::{PANELS, TOKENS};
use crate::product::isa::{Isa, Set};
use crate::product::layout::geometry::Geometry;
use crate::product::layout::types::*;
use crate::product::layout::{Layout, Scales};
use crate::product::pack::{PackPanel, pack_panel};
use crate::product::simd::Simd;
#[cfg(target_arch = "aarch64")]
use crate::product::simd::aarch64::{MIXED, Neon, SIGNED, WIDENING};
use crate::product::simd::portable::Portable;
#[cfg(target_arch = "x86_64")]
use crate::product::simd::{x86_256::Avx2, x86_512::Avx512};
use tpc_ir::DType;

#[derive(Clone, Copy)]
pub(in crate::product) struct Quantised {
    /// Computes the panel shape from the first block in the file and the number of blocks.
    pub geometry: fn(usize, usize) -> Geometry,
    pub pack: fn(&PackPanel, &mut [u8]),
    /// The unit, in blocks of 32, at which a part may start inside a file block: 1 or the file block.
    pub granule: usize,
}

type PerTokens<F> = [Option<F>; TOKENS + 1];

/// Products of a quantised type. The functions have the requirements of their modules' `run` functions. The machine
/// has the instructions of the table's [`Isa`].
#[derive(Clone, Copy)]
pub(in crate::product) struct QuantisedKernels {
    pub decode: PerTokens<unsafe fn(Decode)>,
    pub unpack: unsafe fn(Unpack),
    pub tile: [PerTokens<unsafe fn(Multiply)>; PANELS],
    pub panels: usize,
    /// The largest batch whose weights are decoded in registers.
    pub few: usize,
    /// Elements per scale: 16 or 32.
    pub sub: usize,
    pub min: bool,
    pub offset: u8,
}

#[derive(Clone, Copy)]
pub(in crate::product) struct FloatKernels {
    pub run: [PerTokens<unsafe fn(Floats)>; PANELS],
    pub panels: usize,
}

/// Returns the largest number of tokens, at most `left`, with a function.
pub(in crate::product) fn widest<F: Copy>(of: &PerTokens<F>, left: usize) -> (usize, F) {
    (1..=left.min(TOKENS))
        .rev()
        .find_map(|n| Some((n, of[n]?)))
        .expect("invariant: every table has one token")
}

/// Evaluates `$e` with the stored form `$L` of a quantised type, or returns `None`.
macro_rules! with_layout {
    ($dtype:expr, $L:ident => $e:expr) => {{
        macro_rules! of {
            ($T:ty) => {{
                type $L = $T;
                Some($e)
            }};
        }
        match $dtype {
            DType::Q4_0 => of!(Q4_0),
            DType::Q4_1 => of!(Q4_1),
            DType::Q5_0 => of!(Q5_0),
            DType::Q5_1 => of!(Q5_1),
            DType::Q8_0 => of!(Q8_0),
            DType::Q8_1 => of!(Q8_1),
            DType::Q2K => of!(Q2K),
            DType::Q3K => of!(Q3K),
            DType::Q4K => of!(Q4K),
            DType::Q5K => of!(Q5K),
            DType::Q6K => of!(Q6K),
            DType::Q8K => of!(Q8K),
            DType::Iq4Nl => of!(Iq4Nl),
            DType::Iq4Xs => of!(Iq4Xs),
            DType::Mxfp4 => of!(Mxfp4),
            DType::Nvfp4 => of!(Nvfp4),
            DType::Tq1_0 => of!(Tq1_0),
            DType::Tq2_0 => of!(Tq2_0),
            DType::Q1_0 => of!(Q1_0),
            DType::Q2_0 => of!(Q2_0),
            DType::Iq1S => of!(Iq1S),
            DType::Iq1M => of!(Iq1M),
            DType::Iq2Xxs => of!(Iq2Xxs),
            DType::Iq2Xs => of!(Iq2Xs),
            DType::Iq2S => of!(Iq2S),
            DType::Iq3Xxs => of!(Iq3Xxs),
            DType::Iq3S => of!(Iq3S),
            // Plain types, and types of ik_llama.cpp.
            _ => None,
        }
    }};
}

pub(in crate::product) fn quantised(dtype: DType) -> Option<Quantised> {
    with_layout!(dtype, L => Quantised {
        geometry: Geometry::new::<L>,
        pack: pack_panel::<L>,
        granule: if <L as Layout>::Scales::PER_BLOCK { L::BLOCK / 32 } else { 1 },
    })
}

pub(in crate::product) fn quantised_kernels(isa: Isa, dtype: DType) -> Option<QuantisedKernels> {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => with_layout!(dtype, L => kernels::<Avx512, L>()),
        #[cfg(target_arch = "x86_64")]
        Set::AvxVnni => with_layout!(dtype, L => kernels::<Avx2<true>, L>()),
        #[cfg(target_arch = "x86_64")]
        Set::Avx2 => with_layout!(dtype, L => kernels::<Avx2<false>, L>()),
        #[cfg(target_arch = "aarch64")]
        Set::NeonI8mm => with_layout!(dtype, L => kernels::<Neon<MIXED>, L>()),
        #[cfg(target_arch = "aarch64")]
        Set::NeonDot => with_layout!(dtype, L => kernels::<Neon<SIGNED>, L>()),
        #[cfg(target_arch = "aarch64")]
        Set::Neon => with_layout!(dtype, L => kernels::<Neon<WIDENING>, L>()),
        Set::Portable => with_layout!(dtype, L => kernels::<Portable, L>()),
    }
}

fn kernels<S: Simd, L: Layout>() -> QuantisedKernels {
    let mut decode: PerTokens<unsafe fn(Decode)> = [None; TOKENS + 1];
    decode[1] = Some(decode::run::<S, L, 1>);
    decode[4] = Some(decode::run::<S, L, 4>);
    if S::TOKENS == 6 {
        decode[2] = Some(decode::run::<S, L, 2>);
        decode[6] = Some(decode::run::<S, L, 6>);
    }
    let links = <L as Kind>::LINKS;
    let tile = match (L::Scales::SUB, L::Scales::MIN, <L as Kind>::OFFSET, links) {
        (32, true, None, 8) => tiles::<S, Of<32, true, -1, 8>>(),
        (32, true, None, 4) => tiles::<S, Of<32, true, -1, 4>>(),
        (32, false, Some(0), 8) => tiles::<S, Of<32, false, 0, 8>>(),
        (32, false, Some(3), 8) => tiles::<S, Of<32, false, 3, 8>>(),
        (32, false, Some(4), 4) => tiles::<S, Of<32, false, 4, 4>>(),
        (32, false, Some(6), 1) => tiles::<S, Of<32, false, 6, 1>>(),
        (32, false, Some(7), 1) => tiles::<S, Of<32, false, 7, 1>>(),
        (16, true, None, 8) => tiles::<S, Of<16, true, -1, 8>>(),
        (16, false, Some(2), 8) => tiles::<S, Of<16, false, 2, 8>>(),
        (16, false, Some(4), 4) => tiles::<S, Of<16, false, 4, 4>>(),
        (16, false, Some(6), 1) => tiles::<S, Of<16, false, 6, 1>>(),
        (16, false, Some(5), 2) => tiles::<S, Of<16, false, 5, 2>>(),
        (sub, min, offset, _) => {
            unreachable!("invariant: a kind for {sub} {min} {offset:?} {links}")
        }
    };
    QuantisedKernels {
        decode,
        unpack: unpack::run::<S, L>,
        tile,
        panels: S::PANELS,
        few: S::FEW,
        sub: L::Scales::SUB,
        min: L::Scales::MIN,
        offset: <L as Kind>::OFFSET.map_or(0, |log2| 1 << log2),
    }
}

fn tiles<S: Simd, K: Kind>() -> [PerTokens<unsafe fn(Multiply)>; PANELS] {
    let mut tile: [PerTokens<unsafe fn(Multiply)>; PANELS] = [[None; TOKENS + 1]; PANELS];
    tile[0][1] = Some(tile::run::<S, K, 1, 1>);
    // Short chains with two scales per block need the registers of more tokens.
    if !S::CHAINS || K::LINKS != 2 {
        tile[0][4] = Some(tile::run::<S, K, 1, 4>);
    }
    if S::PANELS == 1 {
        tile[0][2] = Some(tile::run::<S, K, 1, 2>);
    } else {
        tile[0][6] = Some(tile::run::<S, K, 1, 6>);
        tile[1][1] = Some(tile::run::<S, K, 2, 1>);
        tile[1][2] = Some(tile::run::<S, K, 2, 2>);
        tile[1][4] = Some(tile::run::<S, K, 2, 4>);
        tile[1][6] = Some(tile::run::<S, K, 2, 6>);
    }
    tile
}

pub(in crate::product) fn float_kernels(isa: Isa, dtype: DType) -> Option<FloatKernels> {
    Some(match dtype {
        DType::F32 | DType::F64 => floats::<F32>(isa),
        DType::F16 | DType::F8E4M3 => floats::<F16>(isa),
        DType::Bf16 => floats::<Bf16>(isa),
        _ => return None,
    })
}

fn floats<E: Element>(isa: Isa) -> FloatKernels {
    match isa.0 {
        #[cfg(target_arch = "x86_64")]
        Set::Avx512 => floats_on::<Avx512, E>(),
        #[cfg(target_arch = "x86_64")]
        Set::AvxVnni | Set::Avx2 => floats_on::<Avx2<false>, E>(),
        #[cfg(target_arch = "aarch64")]
        Set::NeonI8mm | Set::NeonDot | Set::Neon => floats_on::<Neon<WIDENING>, E>(),
        Set::Portable => floats_on::<Portable, E>(),
    }
}

fn floats_on<S: Simd, E: Element>() -> FloatKernels {
    let mut run: [PerTokens<unsafe fn(Floats)>; PANELS] = [[None; TOKENS + 1]; PANELS];
    run[0][1] = Some(float::run::<S, E, 1, 1>);
    run[0][4] = Some(float::run::<S, E, 1, 4>);
    if S::PANELS == 2 {
        run[1][1] = Some(float::run::<S, E, 2, 1>);
        run[1][2] = Some(float::run::<S, E, 2, 2>);
        run[1][4] = Some(float::run::<S, E, 2, 4>);
        run[1][6] = Some(float::run::<S, E, 2, 6>);
    }
    FloatKernels {
        run,
        panels: S::PANELS,
    }
}
