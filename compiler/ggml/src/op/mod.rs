//! The ops of ggml, typed: parsed once from a capture's `op` name and `op_params` words.
//!
//! - `table` lists every op of `ggml.h`, one line each with its facts ([`OpFacts`]). [`OpKind`] is the op's identity,
//!   [`GgmlOp`] the op of a record with its parameters, [`LoweredOp`] an op with a counterpart in the IR. Adding an op
//!   is one line there; the compiler then names the matches to fill.
//! - `facts` has the columns of the table.
//! - `params` decodes the words of an op's `op_params` into typed fields. `words` records the use of each word, so that
//!   none is lost silently.
//! - `number` has the op numbers used in messages.
//!
//! No other module compares the names of ops. The names are the results of `ggml_op_desc`: a kind of `UNARY` or `GLU`
//! has its own name (`SILU`, `SWIGLU`). A name that ggml does not have is kept as [`GgmlOp::Unknown`], and invalid
//! words as [`GgmlOp::Malformed`]. Neither is an error: both are planned around. The words themselves stay in the
//! record, also for ops whose parameters are not decoded.

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
