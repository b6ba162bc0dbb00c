//! Requests for tensors.

use tpc_ir::DType;

use super::forms::Form;
use crate::description::Presence;
use crate::error::ArchError;
use crate::size::Size;

/// Use of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorRole {
    /// Rows, looked up by token or position.
    Embedding,
    /// The projection to logits.
    Output,
    /// A matrix that multiplies activations.
    Matrix,
    /// A matrix per expert.
    Experts,
    /// The router's matrix.
    Router,
    /// A norm's weight, about 1.
    NormWeight,
    /// A factor on activations, about 1.
    Scale,
    /// Taps of a convolution, one row per channel.
    Taps,
    /// Negative decay rate of a recurrent state, per head.
    Decay,
    /// A bias, about 0.
    Bias,
    /// Divisors of rotary frequencies, at least 1.
    RopeFactors,
    /// Attention sinks, a logit per head.
    Sinks,
    /// Ids, as 32-bit integers.
    Ids {
        /// Upper bound of the ids, exclusive.
        below: u32,
    },
}

impl TensorRole {
    pub(super) const fn is_integer(self) -> bool {
        matches!(self, TensorRole::Ids { .. })
    }

    /// True if files may quantise the tensor.
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

/// A tensor that a lowering requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedTensor {
    /// Name in the file.
    pub name: String,
    /// Elements along each axis, in ggml order.
    pub ne: [u64; 4],
    /// Use of the tensor.
    pub role: TensorRole,
    /// Presence in the architecture's models.
    pub presence: Presence,
}

pub(crate) struct Request<'a> {
    pub(crate) tensor: ExpectedTensor,
    /// Size of each axis, with its metadata keys.
    pub(crate) sizes: &'a [Size],
}

/// A source that answers requests for tensors.
pub(crate) trait TensorSource {
    /// Returns the tensor's element type; `None` if an optional tensor is missing. A missing required tensor, another
    /// shape or an unusable tensor is an error.
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError>;

    /// True if blocks should request the tensor `name`, which belongs to `form`.
    fn offers(&self, name: &str, form: Form) -> bool;

    fn columns(&self, name: &str) -> Option<u64>;

    /// Marks a tensor as known but unused.
    fn ignore(&mut self, name: &str);
}
