//! Every op of ggml, and what becomes of it. Adding one is a line.
//!
//! The names are those that ggml gives a tensor's op in words: the unary and gated kinds stand for themselves, not for
//! the op that they are kinds of. They are in the order of `ggml.h`, so that the two lists can be laid side by side.

use tpc_ir::op::{
    AddId, Arange, ArgSort, BinaryKind, Clamp, Cumsum, Diag, Fill, GatedDeltaNet, GetRows, GluKind,
    HcComb, LeakyRelu, MulMat, MulMatId, NormKind, Repeat, Scale, Side, SortOrder, SsmConv,
    SsmScan, Sum, TopK, Tri, UnaryKind, Xielu,
};
use tpc_ir::{Dim, Op, Value};

use super::compose;
use super::forms;
use super::memory::{Memory, dims};
use super::ops::{Misfit, form};
use super::record::Tensor;

/// Appends what a record computes, of the tensors and the values that it reads.
pub(super) type Build =
    fn(&mut Memory<'_>, &Tensor, &[usize], &[Value]) -> Result<Vec<Value>, Misfit>;

/// What becomes of an op.
#[derive(Clone, Copy)]
pub(super) enum How {
    /// Nothing is computed: memory, or another look at it.
    Memory,
    /// It stands for a family whose members have names of their own.
    Family,
    Unary(UnaryKind),
    Binary(BinaryKind),
    Norm(NormKind),
    Glu(GluKind),
    /// An op of the IR on the same operands.
    Op(fn(&Tensor) -> Result<Op, Misfit>),
    /// The same with several results, packed one after another.
    Several(fn(&Tensor) -> Result<Op, Misfit>),
    /// An op on operands arranged otherwise, or several ops.
    Built(Build),
    /// It has no rule, for this reason: what it reads and makes stays whole, and nothing executes it.
    Whole(&'static str),
}

use How::{Binary, Built, Family, Glu, Norm, Several, Unary, Whole};

const TRAINING: &str = "it belongs to training: it needs its operands whole";
const CUSTOM: &str =
    "a function of the program that nothing is known of: it needs its operands whole";
const IMAGE: &str = "it mixes neighbours in images or signals: it needs its operands whole";
const RECURRENT: &str = "a recurrence without a rule: it needs its operands whole";

/// The op of that name.
pub(super) fn find(name: &str) -> Option<&'static How> {
    OPS.iter().find(|(n, _)| *n == name).map(|(_, how)| how)
}

/// Every op by name.
pub(super) const OPS: &[(&str, How)] = &[
    ("NONE", How::Memory),
    ("DUP", Built(compose::copy)),
    ("ADD", Binary(BinaryKind::Add)),
    ("ADD_ID", How::Op(|_| Ok(AddId { window: None }.into()))),
    ("ADD1", Binary(BinaryKind::Add)),
    ("ACC", Built(compose::accumulate)),
    ("SUB", Binary(BinaryKind::Sub)),
    ("MUL", Binary(BinaryKind::Mul)),
    ("DIV", Binary(BinaryKind::Div)),
    ("SQR", Unary(UnaryKind::Sqr)),
    ("SQRT", Unary(UnaryKind::Sqrt)),
    ("LOG", Unary(UnaryKind::Log)),
    ("SIN", Unary(UnaryKind::Sin)),
    ("COS", Unary(UnaryKind::Cos)),
    ("SUM", Built(compose::sum)),
    ("SUM_ROWS", How::Op(|_| Ok(Sum { axis: 0 }.into()))),
    ("CUMSUM", How::Op(|_| Ok(Cumsum.into()))),
    ("MEAN", Built(compose::mean)),
    ("ARGMAX", Built(compose::argmax)),
    ("COUNT_EQUAL", Whole(TRAINING)),
    (
        "REPEAT",
        How::Op(|t| Ok(Repeat { dims: dims(t.ne()) }.into())),
    ),
    ("REPEAT_BACK", Built(compose::repeat_back)),
    ("CONCAT", Built(compose::concat)),
    ("SILU_BACK", Whole(TRAINING)),
    ("NORM", Norm(NormKind::Layer)),
    ("RMS_NORM", Norm(NormKind::Rms)),
    ("RMS_NORM_BACK", Whole(TRAINING)),
    ("GROUP_NORM", Built(compose::group_norm)),
    ("L2_NORM", Norm(NormKind::L2)),
    ("MUL_MAT", How::Op(|_| Ok(MulMat.into()))),
    (
        "MUL_MAT_ID",
        How::Op(|_| Ok(MulMatId { window: None }.into())),
    ),
    ("OUT_PROD", Built(compose::out_prod)),
    (
        "SCALE",
        How::Op(|t| {
            Ok(Scale {
                scale: t.float(0),
                bias: t.float(1),
            }
            .into())
        }),
    ),
    ("SET", Built(compose::set)),
    ("CPY", Built(compose::copy)),
    ("CONT", Built(compose::copy)),
    ("RESHAPE", How::Memory),
    ("VIEW", How::Memory),
    ("PERMUTE", How::Memory),
    ("TRANSPOSE", How::Memory),
    ("GET_ROWS", How::Op(|_| Ok(GetRows { window: None }.into()))),
    ("GET_ROWS_BACK", Whole(TRAINING)),
    ("SET_ROWS", Built(forms::set_rows)),
    ("DIAG", How::Op(|_| Ok(Diag.into()))),
    ("DIAG_MASK_INF", How::Op(|t| causal(t, f32::NEG_INFINITY))),
    ("DIAG_MASK_ZERO", How::Op(|t| causal(t, 0.0))),
    ("SOFT_MAX", Built(forms::soft_max)),
    ("SOFT_MAX_BACK", Whole(TRAINING)),
    ("ROPE", Built(forms::rope)),
    ("ROPE_BACK", Built(forms::rope_back)),
    (
        "CLAMP",
        How::Op(|t| {
            Ok(Clamp {
                min: t.float(0),
                max: t.float(1),
            }
            .into())
        }),
    ),
    ("CONV_TRANSPOSE_1D", Whole(IMAGE)),
    ("IM2COL", Whole(IMAGE)),
    ("IM2COL_BACK", Whole(TRAINING)),
    ("IM2COL_3D", Whole(IMAGE)),
    ("COL2IM_1D", Whole(IMAGE)),
    ("CONV_2D", Whole(IMAGE)),
    ("CONV_3D", Whole(IMAGE)),
    ("CONV_2D_DW", Whole(IMAGE)),
    ("CONV_TRANSPOSE_2D", Whole(IMAGE)),
    ("POOL_1D", Whole(IMAGE)),
    ("POOL_2D", How::Op(compose::pool_2d)),
    ("POOL_2D_BACK", Whole(TRAINING)),
    ("UPSCALE", Whole(IMAGE)),
    ("PAD", Built(compose::pad)),
    ("PAD_REFLECT_1D", Whole(IMAGE)),
    ("ROLL", Built(compose::roll)),
    (
        "ARANGE",
        How::Op(|t| {
            let n = Dim::constant(t.ne()[0]);
            Ok(Arange {
                start: t.float(0),
                step: t.float(2),
                n,
            }
            .into())
        }),
    ),
    (
        "TIMESTEP_EMBEDDING",
        Whole("it makes a row of each number: it needs its operands whole"),
    ),
    (
        "ARGSORT",
        How::Op(|t| {
            let order = match t.int(0) {
                0 => SortOrder::Ascending,
                1 => SortOrder::Descending,
                _ => return Err(form("an order that is neither ascending nor descending")),
            };
            Ok(ArgSort { order }.into())
        }),
    ),
    ("TOP_K", How::Op(|t| Ok(TopK { k: t.ne()[0] }.into()))),
    (
        "LEAKY_RELU",
        How::Op(|t| Ok(LeakyRelu { slope: t.float(0) }.into())),
    ),
    ("TRI", How::Op(tri)),
    ("FILL", How::Op(|t| Ok(Fill { value: t.float(0) }.into()))),
    ("FLASH_ATTN_EXT", Built(forms::flash_attn)),
    ("FLASH_ATTN_BACK", Whole(TRAINING)),
    ("SSM_CONV", How::Op(|_| Ok(SsmConv.into()))),
    ("SSM_SCAN", Several(|_| Ok(SsmScan.into()))),
    ("WIN_PART", Whole(IMAGE)),
    ("WIN_UNPART", Whole(IMAGE)),
    ("GET_REL_POS", Whole(IMAGE)),
    ("ADD_REL_POS", Whole(IMAGE)),
    ("RWKV_WKV6", Whole(RECURRENT)),
    ("GATED_LINEAR_ATTN", Whole(RECURRENT)),
    ("RWKV_WKV7", Whole(RECURRENT)),
    (
        "SOLVE_TRI",
        Whole("it solves systems of equations: it needs its operands whole"),
    ),
    ("GATED_DELTA_NET", Several(|_| Ok(GatedDeltaNet.into()))),
    ("LIGHTNING_INDEXER", Built(compose::lightning_indexer)),
    (
        "DSV4_HC_COMB",
        How::Op(|t| {
            let iterations =
                u64::try_from(t.int(1)).map_err(|_| form("a negative number of iterations"))?;
            Ok(HcComb {
                eps: t.float(0),
                iterations,
            }
            .into())
        }),
    ),
    ("DSV4_HC_PRE", Built(compose::hc_pre)),
    ("DSV4_HC_POST", Built(compose::hc_post)),
    ("UNARY", Family),
    ("MAP_CUSTOM1", Whole(CUSTOM)),
    ("MAP_CUSTOM2", Whole(CUSTOM)),
    ("MAP_CUSTOM3", Whole(CUSTOM)),
    ("CUSTOM", Whole(CUSTOM)),
    ("CROSS_ENTROPY_LOSS", Whole(TRAINING)),
    ("CROSS_ENTROPY_LOSS_BACK", Whole(TRAINING)),
    ("OPT_STEP_ADAMW", Whole(TRAINING)),
    ("OPT_STEP_SGD", Whole(TRAINING)),
    ("GLU", Family),
    // Kinds of UNARY.
    ("ABS", Unary(UnaryKind::Abs)),
    ("SGN", Unary(UnaryKind::Sgn)),
    ("NEG", Unary(UnaryKind::Neg)),
    ("STEP", Unary(UnaryKind::Step)),
    ("TANH", Unary(UnaryKind::Tanh)),
    ("ELU", Unary(UnaryKind::Elu)),
    ("RELU", Unary(UnaryKind::Relu)),
    ("SIGMOID", Unary(UnaryKind::Sigmoid)),
    ("GELU", Unary(UnaryKind::Gelu)),
    ("GELU_QUICK", Unary(UnaryKind::GeluQuick)),
    ("SILU", Unary(UnaryKind::Silu)),
    ("HARDSWISH", Unary(UnaryKind::Hardswish)),
    ("HARDSIGMOID", Unary(UnaryKind::Hardsigmoid)),
    ("EXP", Unary(UnaryKind::Exp)),
    ("EXPM1", Unary(UnaryKind::Expm1)),
    ("SOFTPLUS", Unary(UnaryKind::Softplus)),
    ("GELU_ERF", Unary(UnaryKind::GeluErf)),
    (
        "XIELU",
        How::Op(|t| {
            // The first parameter is the kind.
            let [alpha_n, alpha_p, beta, eps] = [1, 2, 3, 4].map(|i| t.float(i));
            Ok(Xielu {
                alpha_n,
                alpha_p,
                beta,
                eps,
            }
            .into())
        }),
    ),
    ("FLOOR", Unary(UnaryKind::Floor)),
    ("CEIL", Unary(UnaryKind::Ceil)),
    ("ROUND", Unary(UnaryKind::Round)),
    ("TRUNC", Unary(UnaryKind::Trunc)),
    // Kinds of GLU.
    ("REGLU", Glu(GluKind::Reglu)),
    ("GEGLU", Glu(GluKind::Geglu)),
    ("SWIGLU", Glu(GluKind::Swiglu)),
    ("SWIGLU_OAI", Glu(GluKind::SwigluOai)),
    ("GEGLU_ERF", Glu(GluKind::GegluErf)),
    ("GEGLU_QUICK", Glu(GluKind::GegluQuick)),
    ("SWIGLU_CLAMP", Glu(GluKind::SwigluClamp)),
];

/// Row `i` sees the first `i + n_past + 1` columns.
fn causal(t: &Tensor, fill: f32) -> Result<Op, Misfit> {
    let offset = u64::try_from(t.int(0)).map_err(|_| form("a negative number of past tokens"))?;
    let keep = Side::LowerDiag;
    Ok(Tri { keep, offset, fill }.into())
}

fn tri(t: &Tensor) -> Result<Op, Misfit> {
    let keep = match t.int(0) {
        0 => Side::UpperDiag,
        1 => Side::Upper,
        2 => Side::LowerDiag,
        3 => Side::Lower,
        _ => return Err(form("a triangle that is none of four")),
    };
    let (offset, fill) = (0, 0.0);
    Ok(Tri { keep, offset, fill }.into())
}
