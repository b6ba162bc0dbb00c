//! Instruction sets.
#![expect(unsafe_code, reason = "kernels for instructions that the machine has")]

#[cfg(target_arch = "aarch64")]
use super::simd::aarch64::{MIXED, Neon, SIGNED, WIDENING};
use super::simd::portable::Portable;
use super::simd::{Kernel, Simd};
#[cfg(target_arch = "x86_64")]
use super::simd::{x86_256::Avx2, x86_512::Avx512};
use crate::simd::Isa as Vectors;
use std::fmt;
use std::sync::OnceLock;

/// An instruction set of this machine. All sets give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isa(pub(super) Set);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "aarch64")]
    NeonI8mm,
    #[cfg(target_arch = "aarch64")]
    NeonDot,
    #[cfg(target_arch = "aarch64")]
    Neon,
    Portable,
}

impl Isa {
    /// The set without special instructions.
    pub const PORTABLE: Isa = Isa(Set::Portable);

    /// Returns this machine's instruction sets, fastest first.
    pub fn available() -> &'static [Isa] {
        static ALL: OnceLock<Vec<Isa>> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut all = Vec::new();
            #[cfg(target_arch = "x86_64")]
            for (has, set) in [
                (Avx512::available(), Set::Avx512),
                (Avx2::<true>::available(), Set::AvxVnni),
                (Avx2::<false>::available(), Set::Avx2),
            ] {
                if has {
                    all.push(Isa(set));
                }
            }
            #[cfg(target_arch = "aarch64")]
            for (has, set) in [
                (Neon::<MIXED>::available(), Set::NeonI8mm),
                (Neon::<SIGNED>::available(), Set::NeonDot),
                (Neon::<WIDENING>::available(), Set::Neon),
            ] {
                if has {
                    all.push(Isa(set));
                }
            }
            all.push(Isa::PORTABLE);
            all
        })
    }

    /// Returns this machine's fastest instruction set.
    pub fn best() -> Isa {
        Isa::available()[0]
    }

    /// Returns the instruction set of this name, if available.
    pub fn from_name(name: &str) -> Option<Isa> {
        let named = |isa: &&Isa| isa.to_string() == name;
        Isa::available().iter().find(named).copied()
    }

    pub(crate) const fn vectors(self) -> Vectors {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => Vectors::Avx512,
            #[cfg(target_arch = "x86_64")]
            Set::AvxVnni | Set::Avx2 => Vectors::Avx2,
            #[cfg(target_arch = "aarch64")]
            Set::NeonI8mm | Set::NeonDot | Set::Neon => Vectors::Baseline,
            Set::Portable => Vectors::Baseline,
        }
    }

    /// Runs a kernel whose requirements concern only its own fields.
    pub(crate) fn run<K: Kernel>(self, kernel: K) {
        // SAFETY: an `Isa` exists only if the machine has the instructions.
        unsafe {
            match self.0 {
                #[cfg(target_arch = "x86_64")]
                Set::Avx512 => Avx512::enter(kernel),
                #[cfg(target_arch = "x86_64")]
                Set::AvxVnni => Avx2::<true>::enter(kernel),
                #[cfg(target_arch = "x86_64")]
                Set::Avx2 => Avx2::<false>::enter(kernel),
                #[cfg(target_arch = "aarch64")]
                Set::NeonI8mm => Neon::<MIXED>::enter(kernel),
                #[cfg(target_arch = "aarch64")]
                Set::NeonDot => Neon::<SIGNED>::enter(kernel),
                #[cfg(target_arch = "aarch64")]
                Set::Neon => Neon::<WIDENING>::enter(kernel),
                Set::Portable => Portable::enter(kernel),
            }
        }
    }
}

impl fmt::Display for Isa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => "avx512-vnni",
            #[cfg(target_arch = "x86_64")]
            Set::AvxVnni => "avx-vnni",
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => "avx2",
            #[cfg(target_arch = "aarch64")]
            Set::NeonI8mm => "neon-i8mm",
            #[cfg(target_arch = "aarch64")]
            Set::NeonDot => "neon-dotprod",
            #[cfg(target_arch = "aarch64")]
            Set::Neon => "neon",
            Set::Portable => "portable",
        })
    }
}
