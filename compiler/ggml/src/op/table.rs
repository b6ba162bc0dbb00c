//! Every op of ggml 0.22, in the order of `ggml.h`, so that the two lists can be laid side by side.

use std::fmt;

use super::params::{
    Arange, ArgSort, Clamp, Concat, Decode, DiagMask, Fill, FlashAttnExt, Glu, GroupNorm, HcComb,
    HcPre, LeakyRelu, MulMat, Norm, Pad, ParamError, Permute, Pool2d, Recurrence, Roll, Rope,
    Scale, SetView, SoftMax, Tri, Words, Xielu,
};
use super::words::WordUse;

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

/// Declares [`OpKind`] and [`GgmlOp`] from lines `Variant(Parameters) = "NAME", Family;`.
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
    ($($variant:ident $(($params:ty))? = $name:literal, $family:ident;)*) => {
        /// The identity of an op: what it is, without its parameters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OpKind {
            $(#[doc = concat!("`", $name, "`.")] $variant,)*
        }

        impl OpKind {
            /// Every op, in ggml's order.
            pub const ALL: &'static [OpKind] = &[$(OpKind::$variant),*];

            /// ggml's name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(OpKind::$variant => $name,)*
                }
            }

            /// The family.
            pub const fn family(self) -> Family {
                match self {
                    $(OpKind::$variant => Family::$family,)*
                }
            }
        }

        /// The op of a record, with its parameters.
        #[derive(Clone, Debug, PartialEq)]
        pub enum GgmlOp {
            $(#[doc = concat!("`", $name, "`.")] $variant $(($params))?,)*
            /// An op of ggml with `op_params` that it cannot have.
            Malformed(OpKind, ParamError),
            /// A name that ggml does not have.
            Unknown(String),
        }

        impl GgmlOp {
            /// The op of that name with the parameters in these words; missing words are 0.
            pub fn parse(name: &str, words: &[i32]) -> GgmlOp {
                let op = match name {
                    $($name => ops!(@decode $variant $($params)?, words),)*
                    _ => GgmlOp::Unknown(name.to_owned()),
                };
                op.without_unknown(words)
            }

            /// The op's identity; `None` for a name that ggml does not have.
            pub const fn kind(&self) -> Option<OpKind> {
                match self {
                    $(GgmlOp::$variant { .. } => Some(OpKind::$variant),)*
                    GgmlOp::Malformed(kind, _) => Some(*kind),
                    GgmlOp::Unknown(_) => None,
                }
            }
        }
    };
}

ops! {
    None = "NONE", Leaf;
    Dup = "DUP", Copy;
    Add = "ADD", Binary;
    AddId = "ADD_ID", Other;
    Add1 = "ADD1", Other;
    Acc(SetView) = "ACC", Other;
    Sub = "SUB", Binary;
    Mul = "MUL", Binary;
    Div = "DIV", Binary;
    Sqr = "SQR", Elementwise;
    Sqrt = "SQRT", Elementwise;
    Log = "LOG", Elementwise;
    Sin = "SIN", Elementwise;
    Cos = "COS", Elementwise;
    Sum = "SUM", Other;
    SumRows = "SUM_ROWS", Other;
    Cumsum = "CUMSUM", Other;
    Mean = "MEAN", Other;
    Argmax = "ARGMAX", Other;
    CountEqual = "COUNT_EQUAL", Other;
    Repeat = "REPEAT", Other;
    RepeatBack = "REPEAT_BACK", Other;
    Concat(Concat) = "CONCAT", Other;
    SiluBack = "SILU_BACK", Other;
    Norm(Norm) = "NORM", Norm;
    RmsNorm(Norm) = "RMS_NORM", Norm;
    RmsNormBack = "RMS_NORM_BACK", Other;
    GroupNorm(GroupNorm) = "GROUP_NORM", Other;
    L2Norm(Norm) = "L2_NORM", Norm;
    MulMat(MulMat) = "MUL_MAT", Other;
    MulMatId(MulMat) = "MUL_MAT_ID", Other;
    OutProd = "OUT_PROD", Other;
    Scale(Scale) = "SCALE", Elementwise;
    Set(SetView) = "SET", Other;
    Cpy = "CPY", Copy;
    Cont = "CONT", Copy;
    Reshape = "RESHAPE", View;
    View = "VIEW", View;
    Permute(Permute) = "PERMUTE", View;
    Transpose = "TRANSPOSE", View;
    GetRows = "GET_ROWS", Other;
    GetRowsBack = "GET_ROWS_BACK", Other;
    SetRows = "SET_ROWS", Other;
    Diag = "DIAG", Other;
    DiagMaskInf(DiagMask) = "DIAG_MASK_INF", Other;
    DiagMaskZero(DiagMask) = "DIAG_MASK_ZERO", Other;
    SoftMax(SoftMax) = "SOFT_MAX", Other;
    SoftMaxBack = "SOFT_MAX_BACK", Other;
    Rope(Rope) = "ROPE", Other;
    RopeBack(Rope) = "ROPE_BACK", Other;
    Clamp(Clamp) = "CLAMP", Elementwise;
    ConvTranspose1d = "CONV_TRANSPOSE_1D", Other;
    Im2col = "IM2COL", Other;
    Im2colBack = "IM2COL_BACK", Other;
    Im2col3d = "IM2COL_3D", Other;
    Col2im1d = "COL2IM_1D", Other;
    Conv2d = "CONV_2D", Other;
    Conv3d = "CONV_3D", Other;
    Conv2dDw = "CONV_2D_DW", Other;
    ConvTranspose2d = "CONV_TRANSPOSE_2D", Other;
    Pool1d = "POOL_1D", Other;
    Pool2d(Pool2d) = "POOL_2D", Other;
    Pool2dBack = "POOL_2D_BACK", Other;
    Upscale = "UPSCALE", Other;
    Pad(Pad) = "PAD", Other;
    PadReflect1d = "PAD_REFLECT_1D", Other;
    Roll(Roll) = "ROLL", Other;
    Arange(Arange) = "ARANGE", Other;
    TimestepEmbedding = "TIMESTEP_EMBEDDING", Other;
    Argsort(ArgSort) = "ARGSORT", Other;
    TopK = "TOP_K", Other;
    LeakyRelu(LeakyRelu) = "LEAKY_RELU", Elementwise;
    Tri(Tri) = "TRI", Other;
    Fill(Fill) = "FILL", Other;
    FlashAttnExt(FlashAttnExt) = "FLASH_ATTN_EXT", Other;
    FlashAttnBack = "FLASH_ATTN_BACK", Other;
    SsmConv = "SSM_CONV", Other;
    SsmScan(Recurrence) = "SSM_SCAN", Other;
    WinPart = "WIN_PART", Other;
    WinUnpart = "WIN_UNPART", Other;
    GetRelPos = "GET_REL_POS", Other;
    AddRelPos = "ADD_REL_POS", Other;
    RwkvWkv6 = "RWKV_WKV6", Other;
    GatedLinearAttn = "GATED_LINEAR_ATTN", Other;
    RwkvWkv7 = "RWKV_WKV7", Other;
    SolveTri = "SOLVE_TRI", Other;
    GatedDeltaNet(Recurrence) = "GATED_DELTA_NET", Other;
    LightningIndexer = "LIGHTNING_INDEXER", Other;
    Dsv4HcComb(HcComb) = "DSV4_HC_COMB", Other;
    Dsv4HcPre(HcPre) = "DSV4_HC_PRE", Other;
    Dsv4HcPost = "DSV4_HC_POST", Other;
    Unary = "UNARY", Generic;
    MapCustom1 = "MAP_CUSTOM1", Other;
    MapCustom2 = "MAP_CUSTOM2", Other;
    MapCustom3 = "MAP_CUSTOM3", Other;
    Custom = "CUSTOM", Other;
    CrossEntropyLoss = "CROSS_ENTROPY_LOSS", Other;
    CrossEntropyLossBack = "CROSS_ENTROPY_LOSS_BACK", Other;
    OptStepAdamw = "OPT_STEP_ADAMW", Other;
    OptStepSgd = "OPT_STEP_SGD", Other;
    Glu = "GLU", Generic;
    // Kinds of UNARY.
    Abs = "ABS", Elementwise;
    Sgn = "SGN", Elementwise;
    Neg = "NEG", Elementwise;
    Step = "STEP", Elementwise;
    Tanh = "TANH", Elementwise;
    Elu = "ELU", Elementwise;
    Relu = "RELU", Elementwise;
    Sigmoid = "SIGMOID", Elementwise;
    Gelu = "GELU", Elementwise;
    GeluQuick = "GELU_QUICK", Elementwise;
    Silu = "SILU", Elementwise;
    Hardswish = "HARDSWISH", Elementwise;
    Hardsigmoid = "HARDSIGMOID", Elementwise;
    Exp = "EXP", Elementwise;
    Expm1 = "EXPM1", Elementwise;
    Softplus = "SOFTPLUS", Elementwise;
    GeluErf = "GELU_ERF", Elementwise;
    Xielu(Xielu) = "XIELU", Elementwise;
    Floor = "FLOOR", Elementwise;
    Ceil = "CEIL", Elementwise;
    Round = "ROUND", Elementwise;
    Trunc = "TRUNC", Elementwise;
    // Kinds of GLU.
    Reglu(Glu) = "REGLU", Gated;
    Geglu(Glu) = "GEGLU", Gated;
    Swiglu(Glu) = "SWIGLU", Gated;
    SwigluOai(Glu) = "SWIGLU_OAI", Gated;
    GegluErf(Glu) = "GEGLU_ERF", Gated;
    GegluQuick(Glu) = "GEGLU_QUICK", Gated;
    SwigluClamp(Glu) = "SWIGLU_CLAMP", Gated;
}

impl fmt::Display for OpKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl GgmlOp {
    /// The op; [`GgmlOp::Malformed`] where one of its words is not 0 and ggml's op has no such word.
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

    /// The name, as captures have it.
    pub fn name(&self) -> &str {
        match self {
            GgmlOp::Unknown(name) => name,
            op => op.kind().map_or("", OpKind::name),
        }
    }

    /// Whether it is this op, with any parameters.
    pub fn is(&self, kind: OpKind) -> bool {
        self.kind() == Some(kind)
    }

    /// The parameters of a gated activation.
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

    /// The parameters of a norm of rows.
    pub const fn norm(&self) -> Option<&Norm> {
        match self {
            GgmlOp::Norm(p) | GgmlOp::RmsNorm(p) | GgmlOp::L2Norm(p) => Some(p),
            _ => None,
        }
    }

    /// The family; an unknown op belongs to [`Family::Other`].
    pub fn family(&self) -> Family {
        self.kind().map_or(Family::Other, OpKind::family)
    }
}

impl fmt::Display for GgmlOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
