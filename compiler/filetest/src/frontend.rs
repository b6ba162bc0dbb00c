use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Code, Diagnostic};
use tpc_ir::DType;
use tpc_ir::program::{StorageFormat, Target};

/// Reads a placement from options, with the default cache type and split mode.
pub type ReadPlacement = fn(&[String], DType, SplitMode) -> Result<Placement, Vec<Diagnostic>>;

/// Readers of options, codes, targets and storage formats, from the command line, which depends on this crate.
#[derive(Clone, Copy, Debug)]
pub struct Frontend {
    /// Returns the placement of options, with the default cache type and split mode.
    pub placement: ReadPlacement,
    /// Returns every diagnostic code.
    pub codes: fn() -> Vec<&'static Code>,
    /// Returns a target by name.
    pub target: fn(&str) -> Option<&'static dyn Target>,
    /// The executors' storage formats besides the file's.
    pub formats: &'static [StorageFormat],
}
