//! The translation's claims about a record, which `account` checks.

use tpc_ir::Value;

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) record: usize,
    pub(super) reads: Vec<(usize, Value)>,
    pub(super) made: RecordResult,
}

#[derive(Clone, Debug)]
pub(super) enum RecordResult {
    Value(Value),
    Parts(Vec<Value>),
    /// The new value of the viewed memory.
    Written {
        old: Value,
        /// The value of the view; `None` if an opaque op writes it.
        new: Option<Value>,
        after: Value,
    },
}
