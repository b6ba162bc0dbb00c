//! Counts the transfers of a batch.

use tpc_ir::Op;
use tpc_ir::op::{Collective, OpCategory};

/// Number and volume of one kind of transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of ops.
    pub count: u64,
    /// Bytes of all operands, over all participants, in declared types.
    pub bytes: u64,
}

/// The transfers of one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// `copy`.
    pub copy: Traffic,
    /// `all_reduce`.
    pub all_reduce: Traffic,
    /// `all_gather`.
    pub all_gather: Traffic,
    /// `reduce_scatter`.
    pub reduce_scatter: Traffic,
    /// `all_to_all`.
    pub all_to_all: Traffic,
}

impl Transfers {
    pub(crate) fn counter(&mut self, op: &Op) -> Option<&mut Traffic> {
        match op.category() {
            OpCategory::Copy => Some(&mut self.copy),
            OpCategory::Collective(collective) => Some(match collective {
                Collective::AllReduce => &mut self.all_reduce,
                Collective::AllGather => &mut self.all_gather,
                Collective::ReduceScatter => &mut self.reduce_scatter,
                Collective::AllToAll => &mut self.all_to_all,
            }),
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => None,
        }
    }
}
