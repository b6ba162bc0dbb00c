//! Requests for tensors, and the trait that answers them.

use tpc_ir::DType;

use super::forms::Form;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;

/// The use of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorRole {
    /// Rows looked up by token or position.
    Embedding,
    /// The projection to logits.
    Output,
    /// A matrix that activations are multiplied by.
    Matrix,
    /// A matrix per expert.
    Experts,
    /// The matrix that gives the router's logits.
    Router,
    /// The weight of a norm: about 1.
    NormWeight,
    /// A factor on activations: about 1.
    Scale,
    /// The taps of a convolution along time, a row per channel.
    Taps,
    /// The negative decay rate of a recurrent state, per head.
    Decay,
    /// A bias: about 0.
    Bias,
    /// Divisors of rotary frequencies: 1 or more.
    RopeFactors,
    /// Attention sinks, a logit per head.
    Sinks,
    /// Numbers below `below`, as 32-bit integers.
    Ids {
        /// The number of ids.
        below: u32,
    },
}

impl TensorRole {
    /// Returns true if a file holds such a tensor as integers.
    pub(super) const fn is_integer(self) -> bool {
        matches!(self, TensorRole::Ids { .. })
    }

    /// Returns true if a file may hold such a tensor quantised.
    pub(super) const fn may_be_quantised(self) -> bool {
        match self {
            TensorRole::Embedding
            | TensorRole::Output
            | TensorRole::Matrix
            | TensorRole::Experts
            | TensorRole::Router => true,
            TensorRole::NormWeight
            | TensorRole::Taps
            | TensorRole::Decay
            | TensorRole::Scale
            | TensorRole::Bias
            | TensorRole::RopeFactors
            | TensorRole::Sinks
            | TensorRole::Ids { .. } => false,
        }
    }
}

/// A tensor that a lowering asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Its name in the file.
    pub name: String,
    /// Elements along each axis, in ggml order.
    pub ne: [u64; 4],
    /// Its use.
    pub role: TensorRole,
    /// The presence of the tensor in models.
    pub presence: Presence,
}

/// A request for a tensor.
pub(crate) struct Request<'a> {
    pub(crate) tensor: ExpectedTensor,
    /// The size of each axis, with its keys.
    pub(crate) sizes: &'a [Size],
}

/// Answers requests for tensors.
pub(crate) trait TensorSource {
    /// Returns the element type of the tensor, or `None` if an optional one is missing.
    ///
    /// # Errors
    /// Returns an error if a required tensor is missing, or if the tensor has another shape or cannot be used.
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError>;

    /// Returns true if blocks should request the tensor of that name, which belongs to the given form.
    fn offers(&self, name: &str, form: Form) -> bool;

    /// Returns the columns of the matrix of that name, if the source has it and knows them.
    fn columns(&self, name: &str) -> Option<u64>;

    /// Notes that the lowering knows the tensor of that name and does not use it.
    fn ignore(&mut self, name: &str);
}
