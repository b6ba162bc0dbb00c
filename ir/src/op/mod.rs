//! Ops: a closed set, one struct each, with its text form, types, sharding rule, work and local form. Ops match their
//! ggml counterparts; the reference interpreter defines each function.
//!
//! Shapes are in ggml's axis order, contiguous axis first, without trailing sizes of 1. By default, operands have any
//! real type and results are f32.
//!
//! A new op is one struct that implements [`OpDef`] and one line in the `ops!` list of `registry.rs`.

mod attention;
mod attrs;
mod bits;
mod block;
mod cast;
mod category;
mod cell_parts;
mod collective;
mod constant;
mod curve;
mod def;
mod elementwise;
mod expert;
mod head_groups;
mod hyper;
mod in_place;
mod indexer;
mod leaf;
mod local;
mod matmul;
mod merge_attn;
mod ngram;
mod norm;
mod opaque;
mod pool;
mod position;
mod recurrent;
mod reduce;
mod registry;
mod resize;
mod rope;
mod rows;
mod rule;
mod shape;
mod top_k_mask;
mod types;
mod unreduced;
mod wkv;
mod work;

pub use attention::{FlashAttn, HeadWindow, SoftMax};
pub use attrs::{Attr, AttrError, AttrReader, Attrs, quoted};
pub use block::{BlockInput, BlockPart};
pub use cast::Cast;
pub use category::{Collective, OpCategory};
pub use collective::{AllGather, AllReduce, AllToAll, Copy, ReduceScatter};
pub use constant::{Arange, Hadamard};
pub use curve::{Fill, LeakyRelu, Xielu};
pub use def::OpDef;
pub use elementwise::{Binary, BinaryKind, Clamp, Glu, GluKind, Scale, Unary, UnaryKind};
pub use expert::{AddId, MulMatId};
pub use head_groups::{HeadGrouping, HeadGroups, head_groups};
pub use hyper::HcComb;
pub use indexer::LightningIndexer;
pub use leaf::{Input, InputKind, State, Temperature, TemperatureCurve, Weight};
pub use local::{LocalCtx, ShardedTensor};
pub use matmul::MulMat;
pub use merge_attn::MergeAttn;
pub use ngram::NgramRows;
pub use norm::{Norm, NormApply, NormKind, NormStats};
pub use opaque::{MemoryView, Opaque};
pub use pool::{Pool2d, PoolKind};
pub use position::{Cumsum, Diag, Side, Tri};
pub use recurrent::{GatedDeltaNet, SsmConv, SsmScan};
pub use reduce::{ArgSort, Mean, SortOrder, Sum, TopK, TopMask};
pub use registry::Op;
pub use resize::NewSizes;
pub use rope::{Rope, RopeMode};
pub use rows::{GetRows, SetRows, SetSlice};
pub use rule::{Expr, Linearity, Role, Rule, Slot, opd, res, res_of};
pub use shape::{Concat, Pad, Permute, Repeat, Reshape, Slice};
pub use top_k_mask::{TopKMask, TopKMaskOperands};
pub use types::{InferredTypes, TypeError, axis_index};
pub use unreduced::{ActiveRoles, OperandState, unreduced_result};
pub use wkv::Wkv;
pub use work::{ExpertShare, Extents, Work};
