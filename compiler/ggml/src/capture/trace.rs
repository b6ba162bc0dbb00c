//! The translation's claims about a record, which `account` checks.

use tpc_ir::Value;

#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) record: usize,
    /// The sources' values by position.
    pub(super) reads: Vec<(usize, Value)>,
    pub(super) made: RecordResult,
}

/// The result in a record's memory.
#[derive(Clone, Debug)]
pub(super) enum RecordResult {
    /// The value of its own memory.
    Value(Value),
    /// The consecutive values of its own memory.
    Parts(Vec<Value>),
    /// A new value of the viewed memory.
    Written {
        old: Value,
        /// The view's value; `None` if an opaque op writes it.
        new: Option<Value>,
        after: Value,
    },
}
