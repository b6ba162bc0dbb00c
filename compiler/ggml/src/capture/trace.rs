//! The translation's claims about a record, which `account` checks.

use tpc_ir::Value;

/// The claim about a record.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// The record's position.
    pub(super) record: usize,
    /// The sources' values by position.
    pub(super) reads: Vec<(usize, Value)>,
    /// The result in memory.
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
        /// The value before.
        old: Value,
        /// The view's value; `None` if an opaque op writes it.
        new: Option<Value>,
        /// The value after.
        after: Value,
    },
}
