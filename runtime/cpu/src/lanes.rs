//! Sixteen-lane operations for kernels other than products.
#![allow(unsafe_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "the functions are intrinsics with the trait's contract"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::math::fold;
use crate::product::simd::Simd;
use crate::product::simd::portable::Portable;
#[cfg(target_arch = "x86_64")]
use crate::product::simd::{x86_256::Avx2, x86_512::Avx512};

/// Operations on sixteen lanes, and sums of lanes.
///
/// # Safety
/// Same as [`Simd`].
pub(crate) trait Lanes: Simd {
    /// Sums each vector's lanes, in the order of [`fold`]. Lane `i` of the result is the sum of vector `i`.
    unsafe fn fold16(v: [Self::F; 16]) -> Self::F;
}

impl Lanes for Portable {
    #[inline(always)]
    unsafe fn fold16(v: [[f32; 16]; 16]) -> [f32; 16] {
        v.map(fold)
    }
}

/// Adds two shuffles of a pair of vectors. Closures are not compiled for the instruction set, so this is a macro.
#[cfg(target_arch = "x86_64")]
macro_rules! onto {
    ($add:ident, $shuffle:ident, $low:literal, $high:literal, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        $add($shuffle::<$low>(a, b), $shuffle::<$high>(a, b))
    }};
}

#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    #[inline(always)]
    unsafe fn fold16(v: [__m512; 16]) -> __m512 {
        /// Adds halves, quarters or pairs of two vectors' lanes.
        macro_rules! halves {
            ($a:expr, $b:expr) => {
                onto!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x44, 0xee, $a, $b)
            };
        }
        macro_rules! quarters {
            ($a:expr, $b:expr) => {
                onto!(_mm512_add_ps, _mm512_shuffle_f32x4, 0x88, 0xdd, $a, $b)
            };
        }
        macro_rules! pairs {
            ($a:expr, $b:expr) => {
                onto!(_mm512_add_ps, _mm512_shuffle_ps, 0x44, 0xee, $a, $b)
            };
        }
        /// Sums groups of four lanes of four vectors from vector `$i` on.
        macro_rules! four {
            ($i:literal) => {
                quarters!(halves!(v[$i], v[$i + 1]), halves!(v[$i + 2], v[$i + 3]))
            };
        }
        let (a, b) = (pairs!(four!(0), four!(4)), pairs!(four!(8), four!(12)));
        let sums = onto!(_mm512_add_ps, _mm512_shuffle_ps, 0x88, 0xdd, a, b);
        // Lane 4k + g holds vector 4g + k.
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_ps(order, sums)
    }
}

#[cfg(target_arch = "x86_64")]
impl<const VNNI: bool> Lanes for Avx2<VNNI> {
    #[inline(always)]
    unsafe fn fold16(v: [[__m256; 2]; 16]) -> [__m256; 2] {
        macro_rules! half {
            ($i:expr) => {
                _mm256_add_ps(v[$i][0], v[$i][1])
            };
        }
        macro_rules! two {
            ($i:expr) => {
                onto!(
                    _mm256_add_ps,
                    _mm256_permute2f128_ps,
                    0x20,
                    0x31,
                    half!($i),
                    half!($i + 1)
                )
            };
        }
        macro_rules! pairs {
            ($a:expr, $b:expr) => {
                onto!(_mm256_add_ps, _mm256_shuffle_ps, 0x44, 0xee, $a, $b)
            };
        }
        // Lane 4k + g of the sums holds vector 2g + k.
        let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
        macro_rules! eight {
            ($i:literal) => {{
                let (a, b) = (
                    pairs!(two!($i), two!($i + 2)),
                    pairs!(two!($i + 4), two!($i + 6)),
                );
                let sums = onto!(_mm256_add_ps, _mm256_shuffle_ps, 0x88, 0xdd, a, b);
                _mm256_permutevar8x32_ps(sums, order)
            }};
        }
        [eight!(0), eight!(8)]
    }
}

/// Prefetches the cache line of an address. The address may be invalid.
#[inline]
pub(crate) fn prefetch(at: *const u8) {
    // SAFETY: a prefetch does not read memory, and every x86-64 machine has the instruction.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
        #[cfg(not(target_arch = "x86_64"))]
        Portable::prefetch(at);
    }
}

pub(crate) trait Task {
    /// Runs the task.
    ///
    /// # Safety
    /// The machine has the instructions of `S`, and the implementor's requirements hold.
    unsafe fn run<S: Lanes>(self);
}

/// Runs a task with the machine's best instructions.
///
/// # Safety
/// The implementor's requirements hold.
pub(crate) unsafe fn run<T: Task>(task: T) {
    use crate::simd::Isa;
    // SAFETY: the machine has the instructions.
    unsafe {
        match Isa::best() {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => avx512(task),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2(task),
            _ => task.run::<Portable>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
unsafe fn avx512<T: Task>(task: T) {
    task.run::<Avx512>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<T: Task>(task: T) {
    task.run::<Avx2<false>>();
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fold<'a> {
        from: &'a [f32; 256],
        to: &'a mut [f32; 16],
    }

    impl Task for Fold<'_> {
        #[inline(always)]
        unsafe fn run<S: Lanes>(self) {
            let rows = self.from.as_ptr().cast::<u8>();
            let v = std::array::from_fn(|i| S::f32x16(rows.wrapping_add(i * 64)));
            S::fstore(self.to.as_mut_ptr(), S::fold16(v));
        }
    }

    #[test]
    fn sums_over_lanes_have_the_order_of_the_definition() {
        let mut x = 1_u32;
        let from: [f32; 256] = std::array::from_fn(|_| {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (x >> 8) as f32 / 1e5 - 70.0
        });
        let wanted: Vec<f32> = from.as_chunks::<16>().0.iter().map(|v| fold(*v)).collect();
        let mut found = [[0.0; 16]; 3];
        #[cfg(target_arch = "x86_64")]
        let [best, other, portable] = &mut found;
        #[cfg(not(target_arch = "x86_64"))]
        let [best, _, portable] = &mut found;
        // SAFETY: the slices have the elements.
        unsafe {
            run(Fold {
                from: &from,
                to: best,
            });
            #[cfg(target_arch = "x86_64")]
            if crate::simd::Isa::best() != crate::simd::Isa::Baseline {
                avx2(Fold {
                    from: &from,
                    to: other,
                });
            }
            Fold {
                from: &from,
                to: portable,
            }
            .run::<Portable>();
        }
        assert_eq!(found[0].as_slice(), wanted);
        assert_eq!(found[2].as_slice(), wanted);
        if found[1] != [0.0; 16] {
            assert_eq!(found[1].as_slice(), wanted);
        }
    }
}
