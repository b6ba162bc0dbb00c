//! The parts of the command line that file tests use.

use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Code, Diagnostic};
use tpc_ir::DType;
use tpc_ir::program::{StorageFormat, Target};

/// A function that reads a placement from options, given the default cache type and split mode.
pub type ReadPlacement = fn(&[String], DType, SplitMode) -> Result<Placement, Vec<Diagnostic>>;

/// The readers of options, codes, targets and storage formats. They belong to the command line, which depends on this crate.
#[derive(Clone, Copy, Debug)]
pub struct Frontend {
    /// Returns the placement that options describe, given the default cache type and split mode.
    pub placement: ReadPlacement,
    /// Returns every diagnostic code.
    pub codes: fn() -> Vec<&'static Code>,
    /// Returns the target of a name.
    pub target: fn(&str) -> Option<&'static dyn Target>,
    /// The storage formats of the executors, in addition to the format of the file.
    pub formats: &'static [StorageFormat],
}
