//! Functions compiled for several instruction sets with the same results.
//!
//! Each function is plain Rust on arrays of lanes, compiled for AVX-512, AVX2 with FMA, and the baseline. The bits
//! agree because sums have a fixed order, and every fused multiply-add is [`f32::mul_add`], which rounds once on
//! every machine.

use std::cell::Cell;

thread_local! {
    /// This thread's instruction set, if overridden.
    static INSTEAD: Cell<Option<Isa>> = const { Cell::new(None) };
}

/// Calls `f` with this instruction set, which the machine must have.
pub(crate) fn with<T>(isa: Isa, f: impl FnOnce() -> T) -> T {
    struct Restore(Option<Isa>);
    impl Drop for Restore {
        fn drop(&mut self) {
            INSTEAD.set(self.0);
        }
    }
    let _restore = Restore(INSTEAD.replace(Some(isa)));
    f()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "only x86 has several sets")
)]
pub(crate) enum Isa {
    /// AVX-512 F, BW, DQ, VL.
    Avx512,
    /// AVX2, FMA, F16C.
    Avx2,
    /// Available on every machine of the target.
    Baseline,
}

impl Isa {
    #[inline]
    pub(crate) fn best() -> Isa {
        INSTEAD.get().unwrap_or_else(Isa::found)
    }

    #[cfg(target_arch = "x86_64")]
    fn found() -> Isa {
        use std::sync::atomic::{AtomicU8, Ordering};
        static FOUND: AtomicU8 = AtomicU8::new(0);
        match FOUND.load(Ordering::Relaxed) {
            1 => Isa::Avx512,
            2 => Isa::Avx2,
            3 => Isa::Baseline,
            _ => {
                let avx2 = is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("f16c");
                let avx512 = is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl");
                let code = match (avx2, avx512) {
                    (true, true) => 1,
                    (true, false) => 2,
                    (false, _) => 3,
                };
                FOUND.store(code, Ordering::Relaxed);
                Isa::found()
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    const fn found() -> Isa {
        Isa::Baseline
    }
}

/// Defines a function compiled for every [`Isa`]. The body can use the arguments only.
macro_rules! vectorised {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$(const $c:ident: usize),+>)? (
        $($arg:ident: $ty:ty),* $(,)?
    ) $(-> $ret:ty)? $body:block) => {
        $(#[$meta])*
        #[allow(unsafe_code, clippy::too_many_arguments)]
        $vis fn $name $(<$(const $c: usize),+>)? ($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn body $(<$(const $c: usize),+>)? ($($arg: $ty),*) $(-> $ret)? $body
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
                fn avx512 $(<$(const $c: usize),+>)? ($($arg: $ty),*) $(-> $ret)? {
                    body $(::<$($c),+>)? ($($arg),*)
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2 $(<$(const $c: usize),+>)? ($($arg: $ty),*) $(-> $ret)? {
                    body $(::<$($c),+>)? ($($arg),*)
                }
                match $crate::simd::Isa::best() {
                    // SAFETY: the machine has these instructions.
                    $crate::simd::Isa::Avx512 => unsafe { avx512 $(::<$($c),+>)? ($($arg),*) },
                    // SAFETY: the machine has these instructions.
                    $crate::simd::Isa::Avx2 => unsafe { avx2 $(::<$($c),+>)? ($($arg),*) },
                    $crate::simd::Isa::Baseline => body $(::<$($c),+>)? ($($arg),*),
                }
            }
            #[cfg(not(target_arch = "x86_64"))]
            body $(::<$($c),+>)? ($($arg),*)
        }
    };
}
pub(crate) use vectorised;
