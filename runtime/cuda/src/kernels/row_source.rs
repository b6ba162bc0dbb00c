//! The rows that a norm reads: a tensor, or sums that the kernel computes first.

use tpc_ir::op::Norm;

/// What is normalised.
#[derive(Clone, Debug, PartialEq)]
pub enum RowSource {
    /// A tensor.
    Tensor,
    /// A norm of what is made so, which has no norm in it, times a tensor.
    Norm(Norm, Box<RowSource>),
    /// Parts times factors, added up along axis 1.
    WeightedSum,
    /// The sum over so many devices of a tensor of each.
    AllReduce(usize),
    /// One of these plus a tensor.
    Add(Box<RowSource>),
}

impl RowSource {
    /// Whether tensors of several devices are read.
    pub fn reduces(&self) -> bool {
        match self {
            RowSource::AllReduce(_) => true,
            RowSource::Add(of) | RowSource::Norm(_, of) => of.reduces(),
            RowSource::Tensor | RowSource::WeightedSum => false,
        }
    }
}

/// Whether what is normalised is a result, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepInput {
    /// It is.
    Yes,
    /// It is not.
    No,
}
