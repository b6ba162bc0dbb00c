//! The claims of the translation about a record. `account` checks the claims.

use tpc_ir::Value;

/// The claim about one record.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// The position of the record.
    pub(super) record: usize,
    /// The values of its sources, by position among the sources.
    pub(super) reads: Vec<(usize, Value)>,
    /// The result in its memory.
    pub(super) made: RecordResult,
}

/// The result in the memory of a record.
#[derive(Clone, Debug)]
pub(super) enum RecordResult {
    /// Its own memory has this value.
    Value(Value),
    /// Its own memory has these values one after another.
    Parts(Vec<Value>),
    /// The memory that it looks into has a new value.
    Written {
        /// The value before.
        old: Value,
        /// The value of the view. `None` if an opaque op writes it.
        new: Option<Value>,
        /// The value after.
        after: Value,
    },
}
