//! ggml's ops, parsed from a capture's `op` name and `op_params` words.
//!
//! - `table` has a line with the facts ([`OpFacts`]) per op of `ggml.h`. [`OpKind`] is an op's identity, [`GgmlOp`] a
//!   record's op with its parameters, [`LoweredOp`] an op with an equivalent in the IR.
//! - `params` decodes the words; `words` classifies each word, so that none is lost silently.
//!
//! No other module compares op names. Names are the results of `ggml_op_desc`: each kind of `UNARY` or `GLU` has its
//! own name (`SILU`, `SWIGLU`). Unknown names become [`GgmlOp::Unknown`], invalid words [`GgmlOp::Malformed`]; tpc
//! keeps their operands whole.

mod facts;
mod number;
mod params;
pub mod shapes;
mod table;
mod words;

pub use facts::{Family, Lowering, OpFacts, SplitRule};
pub use number::Numbering;
pub use params::{
    Arange, ArgSort, Clamp, Concat, DiagMask, Fill, FlashAttnExt, Glu, GroupNorm, HcComb, HcPre,
    LeakyRelu, MulMat, Norm, Pad, ParamError, Permute, Pool2d, PoolKind, Precision, Recurrence,
    Roll, Rope, RopeMode, Scale, SetView, SoftMax, SortOrder, Tri, TriKind, Xielu,
};
pub use table::{GgmlOp, LoweredOp, OpKind};
pub use words::{ParamWords, WordUse};

#[cfg(test)]
mod tests;
