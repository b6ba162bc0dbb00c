//! The sources of a record.

use tpc_ir::Value;

#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) records: &'a [usize],
    /// The values, without the destination of a write.
    pub(super) values: &'a [Value],
}
