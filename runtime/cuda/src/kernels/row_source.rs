//! The rows that a norm reads: a tensor, or sums that the kernel computes first.

use tpc_ir::op::Norm;

/// The rows that are normalised.
#[derive(Clone, Debug, PartialEq)]
pub enum RowSource {
    /// A tensor.
    Tensor,
    /// A norm of other rows, without a norm in them, times a tensor.
    Norm(Norm, Box<RowSource>),
    /// Parts times factors, added up along axis 1.
    WeightedSum,
    /// The sum over so many devices of a tensor of each.
    AllReduce(usize),
    /// One of these plus a tensor.
    Add(Box<RowSource>),
}

impl RowSource {
    /// Returns true if tensors of several devices are read.
    pub fn reduces(&self) -> bool {
        match self {
            RowSource::AllReduce(_) => true,
            RowSource::Add(of) | RowSource::Norm(_, of) => of.reduces(),
            RowSource::Tensor | RowSource::WeightedSum => false,
        }
    }
}

/// Says if the rows that are normalised are a result, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepInput {
    /// They are.
    Yes,
    /// They are not.
    No,
}
