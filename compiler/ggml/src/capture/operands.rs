use tpc_ir::Value;

#[derive(Clone, Copy)]
pub(super) struct Operands<'a> {
    pub(super) records: &'a [usize],
    /// The values of the sources, without the destination of a write.
    pub(super) values: &'a [Value],
}
