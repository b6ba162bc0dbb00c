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
    /// A matrix multiplied with activations.
    Matrix,
    /// A matrix per expert.
    Experts,
    /// The router's matrix.
    Router,
    /// A norm's weight: about 1.
    NormWeight,
    /// A factor on activations: about 1.
    Scale,
    /// A convolution's taps, a row per channel.
    Taps,
    /// A recurrent state's negative decay rate per head.
    Decay,
    /// A bias: about 0.
    Bias,
    /// Divisors of rotary frequencies: 1 or more.
    RopeFactors,
    /// Attention sinks: a logit per head.
    Sinks,
    /// Numbers below `below`, as 32-bit integers.
    Ids {
        /// The number of ids.
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
    /// The name in the file.
    pub name: String,
    /// Elements along each axis, in ggml order.
    pub ne: [u64; 4],
    /// The use.
    pub role: TensorRole,
    /// The presence in models.
    pub presence: Presence,
}

pub(crate) struct Request<'a> {
    pub(crate) tensor: ExpectedTensor,
    /// Each axis's size, with its keys.
    pub(crate) sizes: &'a [Size],
}

/// Answers requests for tensors.
pub(crate) trait TensorSource {
    /// Returns the tensor's element type; `None` if an optional tensor is missing.
    ///
    /// # Errors
    ///
    /// Fails if a required tensor is missing, or a tensor has another shape or cannot be used.
    fn find(&mut self, request: Request<'_>) -> Result<Option<DType>, ArchError>;

    /// True if blocks should request that tensor, which belongs to the given form.
    fn offers(&self, name: &str, form: Form) -> bool;

    /// Returns a matrix's columns, if known.
    fn columns(&self, name: &str) -> Option<u64>;

    /// Notes a tensor that the lowering knows and does not use.
    fn ignore(&mut self, name: &str);
}
