use tpc_ir::op::Norm;

/// The rows that a kernel normalises: a tensor, or sums that the kernel computes first.
#[derive(Clone, Debug, PartialEq)]
pub enum RowSource {
    /// The rows of a tensor.
    Tensor,
    /// A norm of other rows times a tensor. The other rows contain no norm.
    Norm(Norm, Box<RowSource>),
    /// The weighted sum of parts along axis 1.
    WeightedSum,
    /// The sum of one tensor per device, for this number of devices.
    AllReduce(usize),
    /// The sum of other rows and a tensor.
    Add(Box<RowSource>),
}

impl RowSource {
    /// Returns the rows of a sum over devices, if another program has added the tensors of all devices.
    #[must_use]
    pub fn of_sum(&self) -> RowSource {
        match self {
            RowSource::AllReduce(_) => RowSource::AllReduce(1),
            RowSource::Add(of) => RowSource::Add(Box::new(of.of_sum())),
            RowSource::Norm(op, of) => RowSource::Norm(op.clone(), Box::new(of.of_sum())),
            RowSource::Tensor | RowSource::WeightedSum => self.clone(),
        }
    }

    /// True for a sum over devices.
    pub fn reduces(&self) -> bool {
        match self {
            RowSource::AllReduce(_) => true,
            RowSource::Add(of) | RowSource::Norm(_, of) => of.reduces(),
            RowSource::Tensor | RowSource::WeightedSum => false,
        }
    }
}

/// Tells if a norm's input is also a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepInput {
    /// The input is a result.
    Yes,
    /// The input is not a result.
    No,
}
