//! ggml's ops, parsed from a capture's `op` name and `op_params` words.
//!
//! - `table` has a line with the facts ([`OpFacts`]) per op of `ggml.h`; the compiler then names the matches to fill.
//!   [`OpKind`] is an op's identity, [`GgmlOp`] a record's op with its parameters, [`LoweredOp`] an op with a
//!   counterpart in the IR.
//! - `facts` has the table's columns.
//! - `params` decodes an op's words; `words` records the use of each word, so that none is lost silently.
//! - `number` has the op numbers of messages.
//!
//! No other module compares op names. They are the results of `ggml_op_desc`: a kind of `UNARY` or `GLU` has its own
//! name (`SILU`, `SWIGLU`). Unknown names become [`GgmlOp::Unknown`], invalid words [`GgmlOp::Malformed`]: tpc plans
//! around both. The record keeps the words.

mod facts;
mod number;
mod params;
mod table;
mod words;

pub use facts::{Family, Lowering, OpFacts, SplitRule};
pub use params::{
    Arange, ArgSort, Clamp, Concat, DiagMask, Fill, FlashAttnExt, Glu, GroupNorm, HcComb, HcPre,
    LeakyRelu, MulMat, Norm, Pad, ParamError, Permute, Pool2d, PoolKind, Precision, Recurrence,
    Roll, Rope, RopeMode, Scale, SetView, SoftMax, SortOrder, Tri, TriKind, Xielu,
};
pub use table::{GgmlOp, LoweredOp, OpKind};
pub use words::{ParamWords, WordUse};

#[cfg(test)]
mod tests;
