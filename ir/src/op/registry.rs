use super::{
    AddId, AllGather, AllReduce, AllToAll, Arange, ArgSort, AttrError, AttrReader, Attrs, Binary,
    Cast, Clamp, Concat, Copy, Cumsum, Diag, Extents, Fill, FlashAttn, GatedDeltaNet, GetRows, Glu,
    Hadamard, HcComb, HeadGrouping, InferredTypes, Input, LeakyRelu, LightningIndexer, LocalCtx,
    Mean, MergeAttn, MulMat, MulMatId, NewSizes, NgramRows, Norm, NormApply, NormStats, OpCategory,
    OpDef, Opaque, Pad, Permute, Pool2d, ReduceScatter, Repeat, Reshape, Rope, Rule, Scale,
    SetRows, SetSlice, Slice, SoftMax, SsmConv, SsmScan, State, Sum, TopK, TopKMask, TopMask, Tri,
    TypeError, Unary, Weight, Wkv, Work, Xielu,
};
use crate::dims::Dim;
use crate::dtype::DType;
use crate::interval::Interval;
use crate::types::TensorType;

macro_rules! ops {
    ($($variant:ident,)*) => {
        /// An op with its attributes.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each variant's struct is documented")]
        pub enum Op { $($variant($variant),)* }

        $(impl From<$variant> for Op {
            fn from(op: $variant) -> Op { Op::$variant(op) }
        })*

        impl Op {
            /// The names of every op.
            pub const NAMES: &'static [&'static [&'static str]] = &[$(<$variant as OpDef>::NAMES),*];

            /// Parses an op; `None` for an unknown name.
            pub fn parse(name: &str, mut attrs: AttrReader) -> Option<Result<Op, AttrError>> {
                $(if <$variant as OpDef>::NAMES.contains(&name) {
                    return Some(<$variant as OpDef>::parse(name, &mut attrs).and_then(|op| {
                        attrs.finish()?;
                        Ok(Op::$variant(op))
                    }));
                })*
                None
            }

            /// Returns the printed name.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$variant(op) => op.name(),)* }
            }

            /// Returns the printed attributes.
            pub fn attrs(&self) -> Attrs {
                match self { $(Op::$variant(op) => op.attrs(),)* }
            }

            /// Infers the types of the results.
            pub fn infer(&self, operands: &[&TensorType]) -> Result<InferredTypes, TypeError> {
                match self { $(Op::$variant(op) => op.infer(operands),)* }
            }

            /// Returns the sharding rule for types that [`Self::infer`] accepts.
            pub fn rule(&self, operands: &[&TensorType], results: &[&TensorType]) -> Rule {
                match self { $(Op::$variant(op) => op.rule(operands, results),)* }
            }

            /// Returns the axes of grouped heads.
            pub fn head_groupings(&self) -> &'static [HeadGrouping] {
                match self { $(Op::$variant(op) => op.head_groupings(),)* }
            }

            /// Returns the category.
            pub const fn category(&self) -> OpCategory {
                match self { $(Op::$variant(_) => <$variant as OpDef>::CATEGORY,)* }
            }

            /// Returns the arithmetic and the memory traffic on one device.
            pub fn work(&self, on: &dyn Extents) -> Work {
                match self { $(Op::$variant(op) => op.work(on),)* }
            }

            /// Returns the op that one device runs on its parts; `None` if the attributes cannot be adapted.
            pub fn localise(&self, ctx: &LocalCtx<'_>) -> Option<Op> {
                match self { $(Op::$variant(op) => op.localise(ctx).map(Op::$variant),)* }
            }

            /// Returns the op for tensors of other sizes.
            #[must_use]
            pub fn resize(&self, to: &dyn NewSizes) -> Op {
                match self { $(Op::$variant(op) => op.resize(to).into(),)* }
            }

            /// Applies `f` to every size among the attributes; `None` if `f` returns `None`.
            pub fn map_dims(&self, f: &mut dyn FnMut(&Dim) -> Option<Dim>) -> Option<Op> {
                match self { $(Op::$variant(op) => op.map_dims(f).map(Op::$variant),)* }
            }
        }
    };
}

ops! {
    Weight,
    Input,
    State,
    Hadamard,
    Arange,
    Unary,
    LeakyRelu,
    Xielu,
    Fill,
    Binary,
    Scale,
    Clamp,
    Cast,
    Glu,
    Norm,
    NormStats,
    NormApply,
    MulMat,
    MulMatId,
    AddId,
    GetRows,
    SetRows,
    SetSlice,
    Rope,
    SoftMax,
    FlashAttn,
    MergeAttn,
    SsmConv,
    SsmScan,
    GatedDeltaNet,
    Wkv,
    LightningIndexer,
    NgramRows,
    HcComb,
    Sum,
    Mean,
    Cumsum,
    TopK,
    TopMask,
    TopKMask,
    ArgSort,
    Reshape,
    Permute,
    Slice,
    Concat,
    Repeat,
    Pad,
    Tri,
    Diag,
    Pool2d,
    Opaque,
    Copy,
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
}

impl Op {
    /// True if the op takes no operands.
    pub const fn is_leaf(&self) -> bool {
        self.category().is_leaf()
    }

    /// True if the op is a weight or a state, which stay in memory between batches.
    pub const fn is_stored(&self) -> bool {
        matches!(self.category(), OpCategory::Stored)
    }

    /// True if every place can compute the result.
    pub const fn is_constant(&self) -> bool {
        matches!(self.category(), OpCategory::Constant)
    }

    /// True if the result holds unchanged elements of operand 0 at the same place: views, repetitions, and selected
    /// rows, except rows of a window, which are zero on other devices.
    pub const fn moves_elements(&self) -> bool {
        match self {
            Op::GetRows(op) => op.window.is_none(),
            _ => matches!(
                self.category(),
                OpCategory::Layout | OpCategory::Selection | OpCategory::Repetition
            ),
        }
    }

    /// True if the op moves data between places or devices.
    pub const fn is_transfer(&self) -> bool {
        self.category().is_transfer()
    }

    /// True if the op involves all devices of a group.
    pub const fn is_collective(&self) -> bool {
        matches!(self.category(), OpCategory::Collective(_))
    }

    /// True if the result is a view of all elements of the operand.
    pub const fn is_layout(&self) -> bool {
        matches!(self.category(), OpCategory::Layout)
    }

    /// True if the result is a view of operand 0.
    pub const fn is_view(&self) -> bool {
        self.category().is_view()
    }

    /// True if the op replaces elements of operand 0 in place.
    pub const fn is_update(&self) -> bool {
        matches!(self.category(), OpCategory::Update)
    }

    /// True if the op is a matrix product.
    pub const fn is_product(&self) -> bool {
        matches!(self.category(), OpCategory::Product)
    }

    /// True if the result holds only zeros and elements of the operands, each at most once.
    pub const fn is_movement(&self) -> bool {
        self.category().is_movement()
    }

    /// Returns the operand whose memory the result shares.
    pub const fn aliases(&self) -> Option<usize> {
        self.category().aliases()
    }

    /// Returns the intervals per axis of a stored leaf; otherwise `None`.
    pub fn parts(&self) -> Option<&[Vec<Interval>]> {
        match self {
            Op::Weight(w) => w.parts.as_deref(),
            Op::State(s) => s.parts.as_deref(),
            _ => None,
        }
    }

    /// Returns the alignment, in elements, of the result's row bounds, for elements of type `dtype`.
    pub fn row_granule(&self, dtype: DType) -> u64 {
        match self {
            Op::Weight(w) => w.row_granule(dtype),
            _ => dtype.block_len(),
        }
    }

    /// Returns the op without its tensor's name.
    #[must_use]
    pub fn without_tensor_name(&self) -> Op {
        match self {
            Op::Weight(w) => Weight {
                tensor: String::new(),
                parts: w.parts.clone(),
            }
            .into(),
            Op::State(s) => State {
                name: String::new(),
                parts: s.parts.clone(),
                cells: s.cells,
            }
            .into(),
            other => other.clone(),
        }
    }
}
