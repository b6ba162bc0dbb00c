//! `tpc filetest`: runs file tests of compiler passes.

use std::fmt::Write;
use std::path::PathBuf;

use tpc_cpu::CpuTarget;
use tpc_cuda::CudaTarget;
use tpc_filetest::{Frontend, check};
use tpc_ir::program::{FileTarget, Target};

use super::output::{self, Failure};

/// The parsers that file tests use.
pub const FRONTEND: Frontend = Frontend {
    placement: super::placement,
    codes: super::catalogue::codes,
    target,
    formats: tpc_engine::artefact::STORAGE_FORMATS,
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// File tests; TPC_BLESS=1 rewrites outputs that differ.
    #[arg(value_name = "TEST.tpir", required = true)]
    files: Vec<PathBuf>,
}

fn target(name: &str) -> Option<&'static dyn Target> {
    match name {
        "file" => Some(&FileTarget),
        "cpu" => Some(&CpuTarget),
        "cuda" => Some(&CudaTarget),
        _ => None,
    }
}

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let bless = std::env::var_os("TPC_BLESS").is_some();
    let mut report = String::new();
    let mut failed = 0;
    for path in &args.files {
        let failures = check(path, &FRONTEND, bless);
        let name = path.display();
        if failures.is_empty() {
            let _ = writeln!(report, "{name}: ok");
        }
        failed += usize::from(!failures.is_empty());
        for failure in failures {
            let _ = writeln!(report, "{name}:{failure}");
        }
    }
    output::result(&report)?;
    match failed {
        0 => Ok(()),
        _ => Err(Failure::findings(Vec::new())),
    }
}
