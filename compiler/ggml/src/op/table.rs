//! Every op of ggml 0.28, in the order of `ggml.h`.

use std::convert::Infallible;
use std::fmt;

use super::facts::{
    CUSTOM, EMBEDDING, Family, IMAGE, Lowering, OpFacts, RECURRENT, SOLVER, SplitRule, TRAINING,
};
use super::params::{
    Arange, ArgSort, Clamp, Concat, Decode, DiagMask, Fill, FlashAttnExt, Glu, GroupNorm, HcComb,
    HcPre, LeakyRelu, MulMat, Norm, Pad, ParamError, Permute, Pool2d, Recurrence, Roll, Rope,
    RopeMode, Scale, SetView, SoftMax, Tri, Words, Xielu,
};
use super::words::{
    DIAG_MASK, FLASH_ATTENTION, GLU, KEPT, LEAF, NO_WORDS, OTHER_KIND, PRODUCT, ROPE,
    ROPE_SECTIONS, SET_VIEW, SWIGLU_CLAMP, SWIGLU_OAI, UNARY, VIEW, WordUse, XIELU, read,
};

/// Declares [`OpKind`], [`GgmlOp`] and [`LoweredOp`] from lines `Variant(Parameters) = "NAME", Family, sources,
/// SplitRule, lowering;`.
///
/// The lowering is `lowered(WORDS)`, `memory(WORDS)`, `opaque(REASON)` or `generic`. `WORDS` gives the meaning of the
/// op's words.
macro_rules! ops {
    (@decode $variant:ident, $words:ident) => {
        GgmlOp::$variant
    };
    (@decode $variant:ident $params:ty, $words:ident) => {
        match <$params>::decode(Words($words)) {
            Ok(params) => GgmlOp::$variant(params),
            Err(error) => GgmlOp::Malformed(OpKind::$variant, error),
        }
    };
    (@lowering lowered $words:expr) => {
        (Lowering::Lowered, $words)
    };
    (@lowering memory $words:expr) => {
        (Lowering::Memory, $words)
    };
    (@lowering opaque $reason:expr) => {
        (Lowering::Opaque($reason), KEPT)
    };
    (@lowering generic) => {
        (Lowering::Generic, KEPT)
    };
    (@field $a:lifetime lowered) => {
        ()
    };
    (@field $a:lifetime lowered $params:ty) => {
        &$a $params
    };
    (@field $a:lifetime $other:ident $($params:ty)?) => {
        Infallible
    };
    (@bind $p:ident $params:ty) => {
        $p
    };
    (@lower $variant:ident lowered $p:ident) => {
        Some(LoweredOp::$variant(()))
    };
    (@lower $variant:ident lowered $p:ident $params:ty) => {
        Some(LoweredOp::$variant($p))
    };
    (@lower $variant:ident $other:ident $p:ident) => {
        None
    };
    (@lower $variant:ident $other:ident $p:ident $params:ty) => {{
        let _ = $p;
        None
    }};
    ($($variant:ident $(($params:ty))? = $name:literal, $family:ident, $sources:literal, $rule:ident,
        $lowering:ident $(($detail:expr))?;)*) => {
        /// An op's identity.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OpKind {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl OpKind {
            /// Every op, in ggml's order.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$variant),*];

            /// Returns the table's entry.
            pub const fn facts(self) -> OpFacts {
                match self {
                    $(OpKind::$variant => {
                        let (lowering, words) = ops!(@lowering $lowering $($detail)?);
                        OpFacts {
                            name: $name,
                            family: Family::$family,
                            least_sources: $sources,
                            split_rule: SplitRule::$rule,
                            lowering,
                            words,
                        }
                    })*
                }
            }
        }

        /// The op of a record, with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GgmlOp {
            $(#[doc = concat!("`", $name, "`.")] $variant $(($params))?,)*
            /// An op with invalid `op_params`.
            Malformed(OpKind, ParamError),
            /// An unknown name.
            Unknown(String),
        }

        /// An op with an equivalent in the IR. Variants of other ops are uninhabited and need no match arm.
        #[derive(Clone, Copy, Debug)]
        pub enum LoweredOp<'a> {
            $(#[doc = concat!("`", $name, "`.")] $variant(ops!(@field 'a $lowering $($params)?)),)*
        }

        impl GgmlOp {
            /// Parses an op's name and words. Missing words are 0.
            pub fn parse(name: &str, words: &[i32]) -> GgmlOp {
                let op = match name {
                    $($name => ops!(@decode $variant $($params)?, words),)*
                    _ => GgmlOp::Unknown(name.to_owned()),
                };
                op.without_unknown(words)
            }

            /// Returns the op's identity; `None` for an unknown name.
            pub const fn kind(&self) -> Option<OpKind> {
                match self {
                    $(GgmlOp::$variant { .. } => Some(OpKind::$variant),)*
                    GgmlOp::Malformed(kind, _) => Some(*kind),
                    GgmlOp::Unknown(_) => None,
                }
            }

            /// Returns the op if it has an equivalent in the IR.
            pub const fn lowered(&self) -> Option<LoweredOp<'_>> {
                match self {
                    $(GgmlOp::$variant $((ops!(@bind p $params)))? => {
                        ops!(@lower $variant $lowering p $($params)?)
                    })*
                    GgmlOp::Malformed(..) | GgmlOp::Unknown(_) => None,
                }
            }
        }
    };
}

ops! {
    None = "NONE", Leaf, 0, None, memory(LEAF);
    Dup = "DUP", Copy, 1, Mirrored, lowered(NO_WORDS);
    Add = "ADD", Binary, 2, Binary, lowered(NO_WORDS);
    AddId = "ADD_ID", Other, 3, AddId, lowered(NO_WORDS);
    Add1 = "ADD1", Other, 2, Mirrored, lowered(NO_WORDS);
    Acc(SetView) = "ACC", Other, 2, Mirrored, lowered(SET_VIEW);
    Sub = "SUB", Binary, 2, Binary, lowered(NO_WORDS);
    Mul = "MUL", Binary, 2, Binary, lowered(NO_WORDS);
    Div = "DIV", Binary, 2, Binary, lowered(NO_WORDS);
    Sqr = "SQR", Elementwise, 1, SameState, lowered(NO_WORDS);
    Sqrt = "SQRT", Elementwise, 1, SameState, lowered(NO_WORDS);
    Log = "LOG", Elementwise, 1, SameState, lowered(NO_WORDS);
    Sin = "SIN", Elementwise, 1, SameState, lowered(NO_WORDS);
    Cos = "COS", Elementwise, 1, SameState, lowered(NO_WORDS);
    Sum = "SUM", Other, 1, Mirrored, lowered(NO_WORDS);
    SumRows = "SUM_ROWS", Other, 1, WholeRows, lowered(NO_WORDS);
    Cumsum = "CUMSUM", Other, 1, WholeRows, lowered(NO_WORDS);
    Mean = "MEAN", Other, 1, WholeRows, lowered(NO_WORDS);
    Argmax = "ARGMAX", Other, 1, WholeRows, lowered(NO_WORDS);
    CountEqual = "COUNT_EQUAL", Other, 2, Mirrored, opaque(TRAINING);
    Repeat = "REPEAT", Other, 1, SameState, lowered(NO_WORDS);
    RepeatBack = "REPEAT_BACK", Other, 1, Mirrored, lowered(NO_WORDS);
    Concat(Concat) = "CONCAT", Other, 2, Concat, lowered(read(1));
    SiluBack = "SILU_BACK", Other, 2, Mirrored, opaque(TRAINING);
    Norm(Norm) = "NORM", Norm, 1, WholeRows, lowered(read(1));
    RmsNorm(Norm) = "RMS_NORM", Norm, 1, WholeRows, lowered(read(1));
    RmsNormBack = "RMS_NORM_BACK", Other, 2, Mirrored, opaque(TRAINING);
    GroupNorm(GroupNorm) = "GROUP_NORM", Other, 1, WholeRows, lowered(read(2));
    L2Norm(Norm) = "L2_NORM", Norm, 1, WholeRows, lowered(read(1));
    MulMat(MulMat) = "MUL_MAT", Other, 2, Product, lowered(PRODUCT);
    MulMatId(MulMat) = "MUL_MAT_ID", Other, 3, ExpertProduct, lowered(PRODUCT);
    OutProd = "OUT_PROD", Other, 2, Mirrored, lowered(NO_WORDS);
    Scale(Scale) = "SCALE", Elementwise, 1, SameState, lowered(read(2));
    Set(SetView) = "SET", Other, 2, Mirrored, lowered(SET_VIEW);
    Cpy = "CPY", Copy, 1, Copy, lowered(NO_WORDS);
    Cont = "CONT", Copy, 1, Reshape, lowered(NO_WORDS);
    Reshape = "RESHAPE", View, 1, Reshape, memory(VIEW);
    View = "VIEW", View, 1, View, memory(VIEW);
    Permute(Permute) = "PERMUTE", View, 1, Permute, memory(VIEW);
    Transpose = "TRANSPOSE", View, 1, Permute, memory(VIEW);
    GetRows = "GET_ROWS", Other, 2, GetRows, lowered(NO_WORDS);
    GetRowsBack = "GET_ROWS_BACK", Other, 2, Mirrored, opaque(TRAINING);
    SetRows = "SET_ROWS", Other, 3, SetRows, lowered(NO_WORDS);
    Diag = "DIAG", Other, 1, Mirrored, lowered(NO_WORDS);
    DiagMaskInf(DiagMask) = "DIAG_MASK_INF", Other, 1, Mirrored, lowered(DIAG_MASK);
    DiagMaskZero(DiagMask) = "DIAG_MASK_ZERO", Other, 1, Mirrored, lowered(DIAG_MASK);
    SoftMax(SoftMax) = "SOFT_MAX", Other, 1, SameState, lowered(read(2));
    SoftMaxBack = "SOFT_MAX_BACK", Other, 2, Mirrored, opaque(TRAINING);
    Rope(Rope) = "ROPE", Other, 2, Rope, lowered(ROPE);
    RopeBack(Rope) = "ROPE_BACK", Other, 2, Rope, lowered(ROPE);
    Clamp(Clamp) = "CLAMP", Elementwise, 1, SameState, lowered(read(2));
    ConvTranspose1d = "CONV_TRANSPOSE_1D", Other, 2, Mirrored, opaque(IMAGE);
    Im2col = "IM2COL", Other, 2, Mirrored, opaque(IMAGE);
    Im2colBack = "IM2COL_BACK", Other, 2, Mirrored, opaque(TRAINING);
    Im2col3d = "IM2COL_3D", Other, 2, Mirrored, opaque(IMAGE);
    Col2im1d = "COL2IM_1D", Other, 1, Mirrored, opaque(IMAGE);
    Conv2d = "CONV_2D", Other, 2, Mirrored, opaque(IMAGE);
    Conv3d = "CONV_3D", Other, 2, Mirrored, opaque(IMAGE);
    Conv2dDw = "CONV_2D_DW", Other, 2, Mirrored, opaque(IMAGE);
    ConvTranspose2d = "CONV_TRANSPOSE_2D", Other, 2, Mirrored, opaque(IMAGE);
    Pool1d = "POOL_1D", Other, 1, Mirrored, opaque(IMAGE);
    Pool2d(Pool2d) = "POOL_2D", Other, 1, Mirrored, lowered(read(7));
    Pool2dBack = "POOL_2D_BACK", Other, 2, Mirrored, opaque(TRAINING);
    Upscale = "UPSCALE", Other, 1, Mirrored, opaque(IMAGE);
    Pad(Pad) = "PAD", Other, 1, Pad, lowered(read(9));
    PadReflect1d = "PAD_REFLECT_1D", Other, 1, Mirrored, opaque(IMAGE);
    Roll(Roll) = "ROLL", Other, 1, Mirrored, lowered(read(4));
    Arange(Arange) = "ARANGE", Other, 0, Mirrored, lowered(read(3));
    TimestepEmbedding = "TIMESTEP_EMBEDDING", Other, 1, Mirrored, opaque(EMBEDDING);
    Argsort(ArgSort) = "ARGSORT", Other, 1, WholeRows, lowered(read(1));
    TopK = "TOP_K", Other, 1, WholeRows, lowered(NO_WORDS);
    LeakyRelu(LeakyRelu) = "LEAKY_RELU", Elementwise, 1, SameState, lowered(read(1));
    Tri(Tri) = "TRI", Other, 1, Mirrored, lowered(read(1));
    Fill(Fill) = "FILL", Other, 1, SameState, lowered(read(1));
    FlashAttnExt(FlashAttnExt) = "FLASH_ATTN_EXT", Other, 3, FlashAttention, lowered(FLASH_ATTENTION);
    FlashAttnBack = "FLASH_ATTN_BACK", Other, 4, Mirrored, opaque(TRAINING);
    SsmConv = "SSM_CONV", Other, 2, Convolution, lowered(NO_WORDS);
    SsmScan(Recurrence) = "SSM_SCAN", Other, 6, Mirrored, lowered(read(1));
    WinPart = "WIN_PART", Other, 1, Mirrored, opaque(IMAGE);
    WinUnpart = "WIN_UNPART", Other, 1, Mirrored, opaque(IMAGE);
    GetRelPos = "GET_REL_POS", Other, 1, Mirrored, opaque(IMAGE);
    AddRelPos = "ADD_REL_POS", Other, 3, Mirrored, opaque(IMAGE);
    RwkvWkv6 = "RWKV_WKV6", Other, 6, Mirrored, opaque(RECURRENT);
    GatedLinearAttn = "GATED_LINEAR_ATTN", Other, 5, Mirrored, opaque(RECURRENT);
    RwkvWkv7 = "RWKV_WKV7", Other, 7, Mirrored, opaque(RECURRENT);
    SolveTri = "SOLVE_TRI", Other, 2, Mirrored, opaque(SOLVER);
    GatedDeltaNet(Recurrence) = "GATED_DELTA_NET", Other, 6, DeltaNet, lowered(read(1));
    LightningIndexer = "LIGHTNING_INDEXER", Other, 4, Mirrored, lowered(NO_WORDS);
    Dsv4HcComb(HcComb) = "DSV4_HC_COMB", Other, 1, Mirrored, lowered(read(2));
    Dsv4HcPre(HcPre) = "DSV4_HC_PRE", Other, 2, Mirrored, lowered(read(2));
    Dsv4HcPost = "DSV4_HC_POST", Other, 3, Mirrored, lowered(NO_WORDS);
    TopKMask = "TOP_K_MASK", Other, 2, Mirrored, lowered(NO_WORDS);
    Unary = "UNARY", Generic, 1, None, generic;
    MapCustom1 = "MAP_CUSTOM1", Other, 1, Mirrored, opaque(CUSTOM);
    MapCustom2 = "MAP_CUSTOM2", Other, 2, Mirrored, opaque(CUSTOM);
    MapCustom3 = "MAP_CUSTOM3", Other, 3, Mirrored, opaque(CUSTOM);
    Custom = "CUSTOM", Other, 0, Mirrored, opaque(CUSTOM);
    CrossEntropyLoss = "CROSS_ENTROPY_LOSS", Other, 2, Mirrored, opaque(TRAINING);
    CrossEntropyLossBack = "CROSS_ENTROPY_LOSS_BACK", Other, 3, Mirrored, opaque(TRAINING);
    OptStepAdamw = "OPT_STEP_ADAMW", Other, 5, Mirrored, lowered(NO_WORDS);
    OptStepSgd = "OPT_STEP_SGD", Other, 3, Mirrored, opaque(TRAINING);
    Glu = "GLU", Generic, 1, None, generic;
    // Kinds of UNARY.
    Abs = "ABS", Elementwise, 1, SameState, lowered(UNARY);
    Sgn = "SGN", Elementwise, 1, SameState, lowered(UNARY);
    Neg = "NEG", Elementwise, 1, SameState, lowered(UNARY);
    Step = "STEP", Elementwise, 1, SameState, lowered(UNARY);
    Tanh = "TANH", Elementwise, 1, SameState, lowered(UNARY);
    Elu = "ELU", Elementwise, 1, SameState, lowered(UNARY);
    Relu = "RELU", Elementwise, 1, SameState, lowered(UNARY);
    Sigmoid = "SIGMOID", Elementwise, 1, SameState, lowered(UNARY);
    Gelu = "GELU", Elementwise, 1, SameState, lowered(UNARY);
    GeluQuick = "GELU_QUICK", Elementwise, 1, SameState, lowered(UNARY);
    Silu = "SILU", Elementwise, 1, SameState, lowered(UNARY);
    Hardswish = "HARDSWISH", Elementwise, 1, SameState, lowered(UNARY);
    Hardsigmoid = "HARDSIGMOID", Elementwise, 1, SameState, lowered(UNARY);
    Exp = "EXP", Elementwise, 1, SameState, lowered(UNARY);
    Expm1 = "EXPM1", Elementwise, 1, SameState, lowered(UNARY);
    Softplus = "SOFTPLUS", Elementwise, 1, SameState, lowered(UNARY);
    GeluErf = "GELU_ERF", Elementwise, 1, SameState, lowered(UNARY);
    Xielu(Xielu) = "XIELU", Elementwise, 1, SameState, lowered(XIELU);
    Floor = "FLOOR", Elementwise, 1, SameState, lowered(UNARY);
    Ceil = "CEIL", Elementwise, 1, SameState, lowered(UNARY);
    Round = "ROUND", Elementwise, 1, SameState, lowered(UNARY);
    Trunc = "TRUNC", Elementwise, 1, SameState, lowered(UNARY);
    // Kinds of GLU.
    Reglu(Glu) = "REGLU", Gated, 1, Gated, lowered(GLU);
    Geglu(Glu) = "GEGLU", Gated, 1, Gated, lowered(GLU);
    Swiglu(Glu) = "SWIGLU", Gated, 1, Gated, lowered(GLU);
    SwigluOai(Glu) = "SWIGLU_OAI", Gated, 1, Gated, lowered(SWIGLU_OAI);
    GegluErf(Glu) = "GEGLU_ERF", Gated, 1, Gated, lowered(GLU);
    GegluQuick(Glu) = "GEGLU_QUICK", Gated, 1, Gated, lowered(GLU);
    SwigluClamp(Glu) = "SWIGLU_CLAMP", Gated, 1, Gated, lowered(SWIGLU_CLAMP);
}

impl OpKind {
    /// Returns ggml's name.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// Returns the family.
    pub const fn family(self) -> Family {
        self.facts().family
    }
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl GgmlOp {
    /// Returns the op, or [`GgmlOp::Malformed`] if a word without a meaning is not 0.
    fn without_unknown(self, words: &[i32]) -> GgmlOp {
        let unknown =
            |&(i, &word): &(usize, &i32)| word != 0 && self.word_use(i) == WordUse::Unknown;
        let found = words.iter().enumerate().find(unknown);
        match (found, self.kind()) {
            (Some((index, &word)), Some(kind)) => {
                let expected = "0: the op has no such parameter";
                let error = ParamError {
                    index,
                    word,
                    expected,
                };
                GgmlOp::Malformed(kind, error)
            }
            _ => self,
        }
    }

    /// Returns the meaning of a word of `op_params`.
    pub fn word_use(&self, index: usize) -> WordUse {
        let is_plain = |mode| matches!(mode, RopeMode::Norm | RopeMode::Neox);
        match (self, self.kind()) {
            (_, None) => WordUse::Read,
            (GgmlOp::Rope(p) | GgmlOp::RopeBack(p), _)
                if ROPE_SECTIONS.contains(&index) && is_plain(p.mode) =>
            {
                OTHER_KIND
            }
            (_, Some(kind)) => kind.facts().words.at(index),
        }
    }

    /// Returns the name in captures.
    pub fn name(&self) -> &str {
        match self {
            GgmlOp::Unknown(name) => name,
            op => op.kind().map_or("", OpKind::name),
        }
    }

    /// True for this op with any parameters.
    pub fn is(&self, kind: OpKind) -> bool {
        self.kind() == Some(kind)
    }

    /// Returns a gated activation's parameters.
    pub const fn glu(&self) -> Option<&Glu> {
        match self {
            GgmlOp::Reglu(p)
            | GgmlOp::Geglu(p)
            | GgmlOp::Swiglu(p)
            | GgmlOp::SwigluOai(p)
            | GgmlOp::GegluErf(p)
            | GgmlOp::GegluQuick(p)
            | GgmlOp::SwigluClamp(p) => Some(p),
            _ => None,
        }
    }

    /// Returns a row norm's parameters.
    pub const fn norm(&self) -> Option<&Norm> {
        match self {
            GgmlOp::Norm(p) | GgmlOp::RmsNorm(p) | GgmlOp::L2Norm(p) => Some(p),
            _ => None,
        }
    }

    /// Returns the family; [`Family::Other`] for an unknown op.
    pub fn family(&self) -> Family {
        self.kind().map_or(Family::Other, OpKind::family)
    }
}

impl fmt::Display for GgmlOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
