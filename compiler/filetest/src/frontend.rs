use tpc_core::placement::{Placement, SplitMode};
use tpc_diag::{Code, Diagnostic};
use tpc_ir::DType;
use tpc_ir::program::{StorageFormat, Target};

/// A function from options, a default cache type and a default split mode to a placement.
pub type ReadPlacement = fn(&[String], DType, SplitMode) -> Result<Placement, Vec<Diagnostic>>;

/// Functions of the command-line crate, which depends on this crate.
#[derive(Clone, Copy, Debug)]
pub struct Frontend {
    /// Parses options to a placement.
    pub placement: ReadPlacement,
    /// Returns every diagnostic code.
    pub codes: fn() -> Vec<&'static Code>,
    /// Returns a target by name.
    pub target: fn(&str) -> Option<&'static dyn Target>,
    /// The storage formats of the executors, in addition to the file's.
    pub formats: &'static [StorageFormat],
}
