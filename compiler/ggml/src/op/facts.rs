//! The facts about an op that the table states.

use super::words::ParamWords;

/// An entry of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpFacts {
    /// ggml's name.
    pub name: &'static str,
    /// The structure of the op.
    pub family: Family,
    /// The number of leading sources that every record of the op has, as ggml's constructors set them. Later sources
    /// are optional.
    pub least_sources: usize,
    /// ggml's rule for splitting the op among devices.
    pub split_rule: SplitRule,
    /// The counterpart in the IR.
    pub lowering: Lowering,
    /// The use of the words of its `op_params`.
    pub words: ParamWords,
}

/// The structure of an op, as far as rules of several ops depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// No op: memory that the caller or an earlier graph fills.
    Leaf,
    /// Another look at the memory of the source.
    View,
    /// A function of each element: `out[i] = f(x[i])`.
    Elementwise,
    /// A function of two elements, the second operand repeated: `out[i] = f(x[i], y[i mod sizes])`.
    Binary,
    /// A gated activation of two operands, or of the two halves of the rows of one.
    Gated,
    /// A norm of each row (axis 0), which keeps its length.
    Norm,
    /// The copy of a tensor's elements, into new memory or into a view.
    Copy,
    /// A name for several ops, which have names of their own.
    Generic,
    /// Anything else.
    Other,
}

/// ggml's rule for splitting an op in its multi-device back end. `crate::meta` has its text and its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitRule {
    /// No rule: leaves, and names of several ops.
    None,
    /// A product with a matrix.
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
    /// Rows written by index.
    SetRows,
    /// A concatenation.
    Concat,
    /// Padding.
    Pad,
    /// A permutation of axes.
    Permute,
    /// Other sizes of the same elements.
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
    /// Every device computes the op of whole sources.
    Mirrored,
}

/// The counterpart of an op in the IR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lowering {
    /// Memory or a view of it, without a computation.
    Memory,
    /// One op of the IR or several; `crate::capture` has them.
    Lowered,
    /// No counterpart, for this reason. Operands and result stay whole.
    Opaque(&'static str),
    /// No counterpart, because records name a member of the family instead.
    Generic,
}

/// The reasons of ops without a counterpart.
pub(super) const TRAINING: &str = "it belongs to training: it needs its operands whole";
pub(super) const CUSTOM: &str =
    "a function of the program, which is not known: it needs its operands whole";
pub(super) const IMAGE: &str =
    "it mixes neighbours in images or signals: it needs its operands whole";
pub(super) const RECURRENT: &str = "a recurrence without a rule: it needs its operands whole";
pub(super) const EMBEDDING: &str = "it makes a row of each number: it needs its operands whole";
pub(super) const SOLVER: &str = "it solves systems of equations: it needs its operands whole";
