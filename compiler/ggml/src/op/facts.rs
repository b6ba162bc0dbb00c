//! The columns of the table of ops.

use super::words::ParamWords;

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpFacts {
    /// ggml's name.
    pub name: &'static str,
    /// The structure.
    pub family: Family,
    /// The number of leading sources that ggml's constructors always set. Later sources are optional.
    pub least_sources: usize,
    /// ggml's rule for a split among devices.
    pub split_rule: SplitRule,
    /// The counterpart in the IR.
    pub lowering: Lowering,
    /// The use of the `op_params` words.
    pub words: ParamWords,
}

/// An op's structure, as far as rules of several ops depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Memory that the caller or an earlier graph fills.
    Leaf,
    /// A view of the source's memory.
    View,
    /// A function of each element: `out[i] = f(x[i])`.
    Elementwise,
    /// A function of two elements, with the second operand repeated: `out[i] = f(x[i], y[i mod sizes])`.
    Binary,
    /// A gated activation of two operands, or of the halves of one operand's rows.
    Gated,
    /// A norm of each row (axis 0).
    Norm,
    /// A copy of a tensor's elements, into new memory or a view.
    Copy,
    /// A common name of several ops.
    Generic,
    /// Other.
    Other,
}

/// ggml's rule for splitting an op among devices; see `crate::meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitRule {
    /// Leaves, and common names of several ops.
    None,
    /// A matrix product.
    Product,
    /// A product with the matrices of selected experts.
    ExpertProduct,
    /// A function of two elements.
    Binary,
    /// A sum with rows of selected experts.
    AddId,
    /// All sources in one state.
    SameState,
    /// A gated activation.
    Gated,
    /// A function of whole rows.
    WholeRows,
    /// A rotation.
    Rope,
    /// Rows by index.
    GetRows,
    /// Writes of rows by index.
    SetRows,
    /// A concatenation.
    Concat,
    /// Padding.
    Pad,
    /// A permutation of axes.
    Permute,
    /// The same elements under other sizes.
    Reshape,
    /// A view.
    View,
    /// A copy into a view.
    Copy,
    /// Attention.
    FlashAttention,
    /// The convolution before a recurrence.
    Convolution,
    /// The gated delta rule.
    DeltaNet,
    /// Every device computes the op on whole sources.
    Mirrored,
}

/// An op's counterpart in the IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// Memory or a view of it.
    Memory,
    /// One or several IR ops; see `crate::capture`.
    Lowered,
    /// No counterpart, for this reason: operands and result stay whole.
    Opaque(&'static str),
    /// No counterpart: records name a member of the family instead.
    Generic,
}

/// The reasons for ops without a counterpart.
pub(super) const TRAINING: &str = "a training op needs whole operands";
pub(super) const CUSTOM: &str = "an unknown function of the program needs whole operands";
pub(super) const IMAGE: &str = "an image or signal op needs whole operands";
pub(super) const RECURRENT: &str = "a recurrence without a rule needs whole operands";
pub(super) const EMBEDDING: &str = "an embedding of numbers needs whole operands";
pub(super) const SOLVER: &str = "a solver needs whole operands";
