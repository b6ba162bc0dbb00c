use tpc_ir::Op;
use tpc_ir::op::{Collective, OpCategory};

/// Number and bytes of one kind of transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of ops.
    pub count: u64,
    /// Bytes of all operands of all participants, in declared types.
    pub bytes: u64,
}

/// Transfers of one batch, per op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Transfers by `copy`.
    pub copy: Traffic,
    /// Transfers by `all_reduce`.
    pub all_reduce: Traffic,
    /// Transfers by `all_gather`.
    pub all_gather: Traffic,
    /// Transfers by `reduce_scatter`.
    pub reduce_scatter: Traffic,
    /// Transfers by `all_to_all`.
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
