//! The sources of a record that is lowered.

use tpc_ir::Value;

/// The sources of a record that is lowered.
#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    /// Their positions in the capture.
    pub(super) records: &'a [usize],
    /// Their values, without the destination of a write.
    pub(super) values: &'a [Value],
}
