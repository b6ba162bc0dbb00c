//! Products of 32 elements of K. All products share this order of operations.
//!
//! Products of codes with one scale (16 or 32 elements) are summed exactly, as integers. Then, in the order of K, the
//! f32 sum of a row and token becomes `f = fma(integer, scale · scale of the activations, f)` per scale. Last, it
//! becomes `f = fma(minimum, sum of the activations, f)` per minimum.
#![expect(unsafe_code, reason = "kernels")]
#![allow(
    clippy::needless_range_loop,
    reason = "counted loops over registers are unrolled"
)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "callers meet the contracts of all calls"
)]

use crate::product::activations::Block;
use crate::product::layout::{Codes, Layout, Scales};
use crate::product::simd::{Simd, Width};

/// Type properties that determine a block's sum.
pub(in crate::product) trait Kind {
    const SUB: usize;
    const MIN: bool;
    const OFFSET: Option<u32>;
    const WIDTH: Width;
    /// Number of units whose products fit sums of 16 bits.
    const LINKS: usize;
}

/// Returns the number of units whose products fit sums of 16 bits, 1, 2, 4 or 8: a unit adds two products to a sum.
pub(in crate::product) const fn links(largest: u8) -> usize {
    match i16::MAX as usize / (2 * 127 * largest as usize) {
        0 | 1 => 1,
        2 | 3 => 2,
        4..8 => 4,
        _ => 8,
    }
}

impl<L: Layout> Kind for L {
    const SUB: usize = L::Scales::SUB;
    const MIN: bool = L::Scales::MIN;
    const OFFSET: Option<u32> = L::Codes::OFFSET;
    const WIDTH: Width = L::Codes::WIDTH;
    const LINKS: usize = links(L::Codes::LARGEST);
}

pub(super) trait Source<S: Simd> {
    unsafe fn unit(&self, u: usize) -> S::I;
    unsafe fn scale(&self, j: usize) -> S::F;
    unsafe fn min(&self, j: usize) -> S::F;
}

pub(super) struct Decoded<'a, S: Simd, L: Layout> {
    units: [S::I; 8],
    head: &'a <L::Scales as Scales>::Head<S>,
    b: usize,
}

impl<'a, S: Simd, L: Layout> Decoded<'a, S, L> {
    /// Reads block `b` of a step.
    ///
    /// # Safety
    /// Same as [`Simd`]; `head` belongs to the step and `body` to the block.
    #[inline(always)]
    pub(super) unsafe fn new(
        head: &'a <L::Scales as Scales>::Head<S>,
        b: usize,
        body: *const u8,
    ) -> Self {
        let units = L::Codes::get::<S>(body);
        Decoded { units, head, b }
    }
}

impl<S: Simd, L: Layout> Source<S> for Decoded<'_, S, L> {
    #[inline(always)]
    unsafe fn unit(&self, u: usize) -> S::I {
        self.units[u]
    }
    #[inline(always)]
    unsafe fn scale(&self, j: usize) -> S::F {
        L::Scales::scale::<S>(self.head, self.b, j)
    }
    #[inline(always)]
    unsafe fn min(&self, j: usize) -> S::F {
        L::Scales::min::<S>(self.head, self.b, j)
    }
}

pub(super) type F<S, const V: usize, const W: usize> = [[<S as Simd>::F; V]; W];

#[inline(always)]
pub(super) unsafe fn add<S: Simd, K: Kind, B: Source<S>, const V: usize, const W: usize>(
    f: &mut F<S, V, W>,
    panels: &[B; V],
    x: [&Block; W],
) {
    if K::SUB == 32 {
        part::<S, K, B, V, W, 0, 8>(f, panels, x, |x| x.negative);
    } else {
        part::<S, K, B, V, W, 0, 4>(f, panels, x, |x| x.negative16[0]);
        part::<S, K, B, V, W, 4, 8>(f, panels, x, |x| x.negative16[1]);
    }
    if !K::MIN {
        return;
    }
    if K::SUB == 32 {
        minima::<S, B, V, W>(f, panels, 0, x, |x| x.sum);
    } else {
        minima::<S, B, V, W>(f, panels, 0, x, |x| x.sum16[0]);
        minima::<S, B, V, W>(f, panels, 1, x, |x| x.sum16[1]);
    }
}

/// Adds units `FROM..TO`, which share a scale. `negative` is the activations' negative sum.
#[inline(always)]
unsafe fn part<
    S: Simd,
    K: Kind,
    B: Source<S>,
    const V: usize,
    const W: usize,
    const FROM: usize,
    const TO: usize,
>(
    f: &mut F<S, V, W>,
    panels: &[B; V],
    x: [&Block; W],
    negative: impl Fn(&Block) -> i32,
) {
    let mut sums = [[S::splat(0); V]; W];
    if let Some(log2) = K::OFFSET {
        for t in 0..W {
            sums[t] = [S::start(K::WIDTH, negative(x[t]), log2); V];
        }
    }
    if S::CHAINS && K::LINKS > 1 {
        chains::<S, K, B, V, W, FROM, TO>(&mut sums, panels, x);
    } else {
        for four in FROM / 4..TO / 4 {
            unit::<S, K, B, V, W>(&mut sums, panels, x, 4 * four);
            unit::<S, K, B, V, W>(&mut sums, panels, x, 4 * four + 1);
            unit::<S, K, B, V, W>(&mut sums, panels, x, 4 * four + 2);
            unit::<S, K, B, V, W>(&mut sums, panels, x, 4 * four + 3);
        }
    }
    for v in 0..V {
        let scale = panels[v].scale(FROM / 4);
        for t in 0..W {
            let scale = S::fmul(scale, S::fsplat(x[t].scale));
            f[t][v] = S::fma(S::to_f(sums[t][v]), scale, f[t][v]);
        }
    }
}

/// Adds units `FROM..TO` in chains: each sums its products in 16 bits, then adds them to `sums`.
#[inline(always)]
unsafe fn chains<
    S: Simd,
    K: Kind,
    B: Source<S>,
    const V: usize,
    const W: usize,
    const FROM: usize,
    const TO: usize,
>(
    sums: &mut [[S::I; V]; W],
    panels: &[B; V],
    x: [&Block; W],
) {
    let links = if K::LINKS < TO - FROM {
        K::LINKS
    } else {
        TO - FROM
    };
    for chain in 0..(TO - FROM) / links {
        let mut pairs = [[S::splat(0); V]; W];
        let first = FROM + chain * links;
        for two in 0..links / 2 {
            link::<S, B, V, W>(&mut pairs, panels, x, first + 2 * two);
            link::<S, B, V, W>(&mut pairs, panels, x, first + 2 * two + 1);
        }
        for t in 0..W {
            for v in 0..V {
                sums[t][v] = S::widen(sums[t][v], pairs[t][v]);
            }
        }
    }
}

#[inline(always)]
unsafe fn link<S: Simd, B: Source<S>, const V: usize, const W: usize>(
    pairs: &mut [[S::I; V]; W],
    panels: &[B; V],
    x: [&Block; W],
    u: usize,
) {
    let mut w = [S::splat(0); V];
    for v in 0..V {
        w[v] = panels[v].unit(u);
    }
    for t in 0..W {
        let x = S::splat4(x[t].codes.as_ptr().add(4 * u));
        for v in 0..V {
            pairs[t][v] = S::link(pairs[t][v], w[v], x);
        }
    }
    if W > 1 {
        for t in 0..W {
            for v in 0..V {
                pairs[t][v] = S::settled(pairs[t][v]);
            }
        }
    }
}

#[inline(always)]
unsafe fn unit<S: Simd, K: Kind, B: Source<S>, const V: usize, const W: usize>(
    sums: &mut [[S::I; V]; W],
    panels: &[B; V],
    x: [&Block; W],
    u: usize,
) {
    let mut w = [S::splat(0); V];
    for v in 0..V {
        w[v] = panels[v].unit(u);
    }
    for t in 0..W {
        let x = S::splat4(x[t].codes.as_ptr().add(4 * u));
        for v in 0..V {
            sums[t][v] = S::dot(K::WIDTH, sums[t][v], w[v], x);
        }
    }
    if !S::CHAINS {
        for t in 0..W {
            for v in 0..V {
                sums[t][v] = S::settled(sums[t][v]);
            }
        }
    }
}

/// Adds the minima of part `j` times the sums of the activations. A loop, because mapping an array may compile to a
/// call, which saves all registers.
#[inline(always)]
unsafe fn minima<S: Simd, B: Source<S>, const V: usize, const W: usize>(
    f: &mut F<S, V, W>,
    panels: &[B; V],
    j: usize,
    x: [&Block; W],
    sum: impl Fn(&Block) -> f32,
) {
    for v in 0..V {
        let min = panels[v].min(j);
        for t in 0..W {
            f[t][v] = S::fma(min, S::fsplat(sum(x[t])), f[t][v]);
        }
    }
}
