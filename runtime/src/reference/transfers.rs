//! The transfers of a batch, counted.

use tpc_ir::Op;

/// The number and volume of one kind of transfer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Number of ops.
    pub count: u64,
    /// Bytes of all operands, over all participants, in the types that the graph declares.
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
    /// The counter of a transfer; `None` for other ops.
    pub(super) fn counter(&mut self, op: &Op) -> Option<&mut Traffic> {
        match op {
            Op::Copy(_) => Some(&mut self.copy),
            Op::AllReduce(_) => Some(&mut self.all_reduce),
            Op::AllGather(_) => Some(&mut self.all_gather),
            Op::ReduceScatter(_) => Some(&mut self.reduce_scatter),
            Op::AllToAll(_) => Some(&mut self.all_to_all),
            Op::Weight(_)
            | Op::Input(_)
            | Op::State(_)
            | Op::Hadamard(_)
            | Op::Arange(_)
            | Op::LeakyRelu(_)
            | Op::Xielu(_)
            | Op::Fill(_)
            | Op::LightningIndexer(_)
            | Op::HcComb(_)
            | Op::Mean(_)
            | Op::Cumsum(_)
            | Op::Tri(_)
            | Op::Diag(_)
            | Op::Pool2d(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Scale(_)
            | Op::Clamp(_)
            | Op::Glu(_)
            | Op::Norm(_)
            | Op::NormStats(_)
            | Op::NormApply(_)
            | Op::MulMat(_)
            | Op::MulMatId(_)
            | Op::AddId(_)
            | Op::GetRows(_)
            | Op::SetRows(_)
            | Op::SetSlice(_)
            | Op::Rope(_)
            | Op::SoftMax(_)
            | Op::FlashAttn(_)
            | Op::SsmConv(_)
            | Op::SsmScan(_)
            | Op::GatedDeltaNet(_)
            | Op::Sum(_)
            | Op::TopK(_)
            | Op::ArgSort(_)
            | Op::Reshape(_)
            | Op::Permute(_)
            | Op::Slice(_)
            | Op::Concat(_)
            | Op::Repeat(_)
            | Op::Pad(_)
            | Op::Opaque(_) => None,
        }
    }
}
