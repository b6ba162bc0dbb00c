//! The graph's value of each record.

use tpc_ir::Value;

use super::trace::{RecordResult, Trace};

/// The content of a record's memory after the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// The position of the record.
    pub record: usize,
    /// Values whose elements, one value after the other, are the memory of the record's owner.
    pub memory: Vec<Value>,
}

pub(super) fn computed(traces: &[Trace]) -> Vec<Computed> {
    let of = |trace: &Trace| Computed {
        record: trace.record,
        memory: match &trace.made {
            RecordResult::Value(v) => vec![*v],
            RecordResult::Parts(parts) => parts.clone(),
            RecordResult::Written { after, .. } => vec![*after],
        },
    };
    traces.iter().map(of).collect()
}
