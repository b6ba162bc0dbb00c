//! The sources of a record.

use tpc_ir::Value;

/// The sources of a record.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    /// The positions in the capture.
    pub(super) records: &'a [usize],
    /// The values, without the destination of a write.
    pub(super) values: &'a [Value],
}
