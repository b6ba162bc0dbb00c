//! NVRTC, the compiler of kernels for cards. It needs neither a card nor a driver.
//!
//! The same source and target give the same bytes on every machine. Options and program name are fixed. Line tables,
//! which contain the folder, are omitted. Kernels that spill registers are refused.

mod build;
mod cache;
mod counts;
mod disassembly;
mod library;
mod loops;
mod report;
mod sizes;
mod walk;

use std::path::PathBuf;

use tpc_ir::Code;

use crate::codes;
use crate::kernels::PRELUDE;

pub use build::{BuildOutput, Progress, build};
pub use cache::Cache;
pub use counts::{CodeCounts, LoopUnit};
pub use disassembly::{Disassembler, Instructions, instructions_per_mma, instructions_per_weight};
pub use library::Nvrtc;
pub use report::Resources;
pub use walk::shortest_walk;

/// The targets of an artefact, from Turing to Blackwell.
pub const TARGETS: [&str; 6] = ["sm_75", "sm_80", "sm_89", "sm_90a", "sm_100f", "sm_120f"];

/// Returns the target in [`TARGETS`] whose code runs on this compute capability.
///
/// Code runs on devices with the same major version and an equal or higher minor version. Targets with an `a` run on
/// one capability only; targets with an `f` run on its family.
pub fn target_for((major, minor): (u32, u32)) -> Option<&'static str> {
    match (major, minor) {
        (7, 5..) => Some("sm_75"),
        (8, 9..) => Some("sm_89"),
        (8, _) => Some("sm_80"),
        (9, 0) => Some("sm_90a"),
        (10, 0 | 3) => Some("sm_100f"),
        (12, 0 | 1) => Some("sm_120f"),
        _ => None,
    }
}

/// A reason why kernels were not compiled.
#[derive(Debug, thiserror::Error)]
pub enum NvrtcError {
    /// The library is missing.
    #[error(
        "NVRTC, the compiler of CUDA kernels, was not found in {}",
        tried.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing {
        /// The searched paths.
        tried: Vec<PathBuf>,
    },
    /// `TPC_NVRTC` is `none`.
    #[error("TPC_NVRTC=none forbids compiling CUDA kernels")]
    Off,
    /// The library that `TPC_NVRTC` names is missing or unusable.
    #[error("TPC_NVRTC={}: {why}", value.display())]
    Named {
        /// The value of the variable.
        value: PathBuf,
        /// The defect.
        why: String,
    },
    /// The library does not load, or lacks a function.
    #[error("{} is not usable as NVRTC: {why}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// The defect.
        why: String,
    },
    /// NVRTC does not support the target.
    #[error("NVRTC {}.{} does not support target {target}", version.0, version.1)]
    Target {
        /// The target.
        target: String,
        /// The version of NVRTC.
        version: (i32, i32),
    },
    /// The source does not compile.
    #[error("the kernels of module {module} do not compile for {target}:\n{log}")]
    Compile {
        /// The module.
        module: String,
        /// The target.
        target: String,
        /// The log of the compiler.
        log: String,
    },
    /// A kernel needs more registers than a thread has.
    #[error("kernel {kernel} of module {module} spills {bytes} bytes of registers on {target}")]
    Spills {
        /// The module.
        module: String,
        /// The kernel.
        kernel: String,
        /// The target.
        target: String,
        /// The bytes of registers stored and loaded.
        bytes: u64,
    },
}

impl NvrtcError {
    /// True if the machine has no NVRTC, or the user turned it off. An unusable NVRTC is not absent.
    pub const fn is_absent(&self) -> bool {
        matches!(self, NvrtcError::Missing { .. } | NvrtcError::Off)
    }

    /// Returns the code, which [`crate::CODES`] declares.
    pub fn code(&self) -> &'static Code {
        match self {
            NvrtcError::Missing { .. } | NvrtcError::Off => &codes::NVRTC_MISSING,
            NvrtcError::Named { .. } | NvrtcError::Unusable { .. } => &codes::NVRTC_UNUSABLE,
            NvrtcError::Target { .. } => &codes::NVRTC_TARGET,
            NvrtcError::Compile { .. } => &codes::COMPILE,
            NvrtcError::Spills { .. } => &codes::SPILLS,
        }
    }
}

/// A compiled module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledModule {
    /// The machine code.
    pub cubin: Vec<u8>,
    /// The resources of each kernel.
    pub kernels: Vec<Resources>,
}

impl CompiledModule {
    /// Returns the code size of each kernel in bytes.
    pub fn sizes(&self) -> std::collections::BTreeMap<String, u64> {
        sizes::sizes(&self.cubin)
    }
}

/// Returns the complete source of a module: prelude and source.
pub fn with_prelude(source: &str) -> String {
    format!("#line 1 \"prelude.cuh\"\n{PRELUDE}\n#line 1 \"module.cu\"\n{source}")
}

/// Returns the compiler options, which are part of the cache key.
///
/// Products and sums are rounded separately, as in the emulation. Kernels call `fmaf` for a single rounding.
fn options(target: &str, version: (i32, i32)) -> Vec<String> {
    let mut options = vec![
        format!("--gpu-architecture={target}"),
        "--std=c++17".into(),
        "--fmad=false".into(),
        "--ptxas-options=-v".into(),
    ];
    // Code from NVRTC's own cache lacks the resource report.
    if version >= (12, 9) {
        options.push("--no-cache".into());
    }
    options
}

fn spills(module: &str, target: &str, kernels: &[Resources]) -> Result<(), NvrtcError> {
    match kernels.iter().find(|k| k.spilled > 0) {
        Some(kernel) => Err(NvrtcError::Spills {
            module: module.to_owned(),
            kernel: kernel.kernel.clone(),
            target: target.to_owned(),
            bytes: kernel.spilled,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_capability_has_the_code_that_runs_on_it() {
        let found = |c| target_for(c).unwrap_or("none");
        assert_eq!(found((7, 0)), "none");
        assert_eq!(found((7, 5)), "sm_75");
        assert_eq!([(8, 0), (8, 6), (8, 7)].map(found), ["sm_80"; 3]);
        assert_eq!(found((8, 9)), "sm_89");
        assert_eq!(found((9, 0)), "sm_90a");
        assert_eq!([(10, 0), (10, 3)].map(found), ["sm_100f"; 2]);
        assert_eq!([(12, 0), (12, 1)].map(found), ["sm_120f"; 2]);
        assert_eq!(found((13, 0)), "none");
        assert!(TARGETS.iter().all(|t| {
            let digits: String = t.chars().filter(char::is_ascii_digit).collect();
            let number: u32 = digits.parse().expect("a number");
            target_for((number / 10, number % 10)) == Some(t)
        }));
    }

    #[test]
    fn spills_are_refused() {
        let log = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'a' for 'sm_80'
ptxas info    : Function properties for a
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 18 registers, used 1 barriers, 128 bytes smem, 380 bytes cmem[0]
ptxas info    : Compiling entry function 'b' for 'sm_80'
ptxas info    : Function properties for b
    96 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads
ptxas info    : Used 255 registers, 380 bytes cmem[0]
";
        let kernels = report::kernels(log);
        assert_eq!(kernels.len(), 2);
        assert_eq!(
            (kernels[0].registers, kernels[0].shared, kernels[0].stack),
            (18, 128, 0)
        );
        assert_eq!(
            (kernels[1].registers, kernels[1].spilled, kernels[1].stack),
            (255, 84, 96)
        );
        assert!(spills("m", "sm_80", &kernels[..1]).is_ok());
        let error = spills("m", "sm_80", &kernels).expect_err("b spills");
        assert_eq!(
            error.to_string(),
            "kernel b of module m spills 84 bytes of registers on sm_80"
        );
    }
}
