//! The translation's claims about a record, which `account` checks.

use tpc_ir::Value;

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) record: usize,
    /// The values of the sources, by position.
    pub(super) reads: Vec<(usize, Value)>,
    pub(super) made: RecordResult,
}

#[derive(Clone, Debug)]
pub(super) enum RecordResult {
    /// The value of the record's own memory.
    Value(Value),
    /// The consecutive values of the record's own memory.
    Parts(Vec<Value>),
    /// The new value of the viewed memory.
    Written {
        old: Value,
        /// The value of the view; `None` if an opaque op writes it.
        new: Option<Value>,
        after: Value,
    },
}
