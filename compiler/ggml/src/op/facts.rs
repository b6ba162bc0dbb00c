use super::words::ParamWords;

/// An entry of the table of ops.
#[derive(Clone, Copy, Debug)]
pub struct OpFacts {
    /// ggml's name.
    pub name: &'static str,
    /// The family.
    pub family: Family,
    /// The number of sources that ggml's constructors always set. Later sources are optional.
    pub least_sources: usize,
    /// ggml's rule for splitting the op among devices.
    pub split_rule: SplitRule,
    /// The equivalent in the IR.
    pub lowering: Lowering,
    /// The meaning of the `op_params` words.
    pub words: ParamWords,
}

/// The structure of an op, if rules for several ops depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Memory that the caller or an earlier graph fills.
    Leaf,
    /// A view of another tensor's memory.
    View,
    /// A function of each element: `out[i] = f(x[i])`.
    Elementwise,
    /// A function of two elements; the second operand is repeated: `out[i] = f(x[i], y[i mod sizes])`.
    Binary,
    /// A gated activation of two operands, or of the halves of one operand's rows.
    Gated,
    /// A norm of each row (axis 0).
    Norm,
    /// A copy of a tensor's elements, into new memory or a view.
    Copy,
    /// A name that several ops share.
    Generic,
    /// Any other op.
    Other,
}

/// ggml's rule for splitting an op among devices; see `crate::meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitRule {
    /// No rule: leaves, and names that several ops share.
    None,
    /// A matrix product.
    Product,
    /// A product with the matrices of selected experts.
    ExpertProduct,
    /// A function of two elements.
    Binary,
    /// A sum with rows of selected experts.
    AddId,
    /// An op whose sources all have one state.
    SameState,
    /// A gated activation.
    Gated,
    /// A function of whole rows.
    WholeRows,
    /// A rotation.
    Rope,
    /// A gather of rows by index.
    GetRows,
    /// A scatter of rows by index.
    SetRows,
    /// A concatenation.
    Concat,
    /// Padding.
    Pad,
    /// A permutation of axes.
    Permute,
    /// The same elements with other sizes.
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
    /// An op that every device computes from whole sources.
    Mirrored,
}

/// The equivalent of an op in the IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// Memory or a view of it.
    Memory,
    /// One or several IR ops; see `crate::capture`.
    Lowered,
    /// No equivalent, for this reason. Operands and result stay whole on every device.
    Opaque(&'static str),
    /// No equivalent: captures use the names of the individual ops.
    Generic,
}

pub(super) const TRAINING: &str = "a training op needs whole operands";
pub(super) const CUSTOM: &str = "an unknown function of the program needs whole operands";
pub(super) const IMAGE: &str = "an image or signal op needs whole operands";
pub(super) const RECURRENT: &str = "a recurrence without a rule needs whole operands";
pub(super) const EMBEDDING: &str = "an embedding of numbers needs whole operands";
pub(super) const SOLVER: &str = "a solver needs whole operands";
