//! The lowering of every op of ggml: a counterpart in the IR, a composition of several ops, or the reason why it has
//! none. The match has no wildcard, so a new op of `crate::op` is a line here.

use tpc_ir::op::{
    AddId, Arange, ArgSort, Binary, BinaryKind, Clamp, Cumsum, Diag, Fill, GatedDeltaNet, GetRows,
    GluKind, HcComb, LeakyRelu, MulMat, MulMatId, Norm, NormKind, Repeat, Scale, Side, SortOrder,
    SsmConv, SsmScan, Sum, TopK, Tri, Unary, UnaryKind, Xielu,
};
use tpc_ir::{Dim, Op, Value};

use super::append::{OpaqueReason, form};
use super::compose;
use super::forms;
use super::memory::{Memory, dims};
use super::operands::Operands;
use super::record::Record;
use crate::op::{self, GgmlOp};

/// Appends what a record computes; the values are its result, or the results that it packs.
pub(super) type Build<'t> = Box<
    dyn FnOnce(&mut Memory<'_>, &Record, Operands<'_>) -> Result<Vec<Value>, OpaqueReason> + 't,
>;

/// The lowering of an op.
pub(super) enum OpLowering<'t> {
    /// Nothing is computed: memory, or a view of it.
    Memory,
    /// One op of the IR on the same operands.
    Direct(Op),
    /// One op of the IR whose several results ggml packs into one tensor.
    Packed(Op),
    /// Other operands, or several ops.
    Custom(Build<'t>),
    /// No rule, for this reason: operands and result stay whole. Executors know the op by its name, or not at all.
    Opaque(&'static str),
}

use OpLowering::{Memory as NoOp, Opaque};

const TRAINING: &str = "it belongs to training: it needs its operands whole";
const CUSTOM: &str = "a function of the program, which is not known: it needs its operands whole";
const IMAGE: &str = "it mixes neighbours in images or signals: it needs its operands whole";
const RECURRENT: &str = "a recurrence without a rule: it needs its operands whole";

fn unary<'t>(kind: UnaryKind) -> OpLowering<'t> {
    OpLowering::Direct(Unary { kind }.into())
}

fn binary<'t>(kind: BinaryKind) -> OpLowering<'t> {
    OpLowering::Direct(Binary { kind }.into())
}

fn norm<'t>(kind: NormKind, p: &op::Norm) -> OpLowering<'t> {
    OpLowering::Direct(Norm { kind, eps: p.eps }.into())
}

fn glu<'t>(kind: GluKind, p: &'t op::Glu) -> OpLowering<'t> {
    custom(move |m, t, o| forms::gated(m, t, kind, p, o.values))
}

fn direct<'t>(op: impl Into<Op>) -> OpLowering<'t> {
    OpLowering::Direct(op.into())
}

fn custom<'t>(
    build: impl FnOnce(&mut Memory<'_>, &Record, Operands<'_>) -> Result<Vec<Value>, OpaqueReason> + 't,
) -> OpLowering<'t> {
    OpLowering::Custom(Box::new(build))
}

/// The lowering of a record's op.
///
/// # Errors
/// [`OpaqueReason`] when the op is unknown, or its parameters make no sense or are not in the IR.
pub(super) fn lowering(t: &Record) -> Result<OpLowering<'_>, OpaqueReason> {
    Ok(match &t.op {
        GgmlOp::Unknown(_) => return Err(OpaqueReason::Unknown),
        GgmlOp::Malformed(_, error) => return Err(OpaqueReason::Form(error.to_string())),
        GgmlOp::None => NoOp,
        GgmlOp::Dup | GgmlOp::Cpy | GgmlOp::Cont => custom(|m, t, o| compose::copy(m, t, o.values)),
        GgmlOp::Add | GgmlOp::Add1 => binary(BinaryKind::Add),
        GgmlOp::AddId => direct(AddId { window: None }),
        GgmlOp::Acc(p) => custom(|m, t, o| compose::accumulate(m, t, p, o)),
        GgmlOp::Sub => binary(BinaryKind::Sub),
        GgmlOp::Mul => binary(BinaryKind::Mul),
        GgmlOp::Div => binary(BinaryKind::Div),
        GgmlOp::Sqr => unary(UnaryKind::Sqr),
        GgmlOp::Sqrt => unary(UnaryKind::Sqrt),
        GgmlOp::Log => unary(UnaryKind::Log),
        GgmlOp::Sin => unary(UnaryKind::Sin),
        GgmlOp::Cos => unary(UnaryKind::Cos),
        GgmlOp::Sum => custom(|m, t, o| compose::sum(m, t, o.values)),
        GgmlOp::SumRows => direct(Sum { axis: 0 }),
        GgmlOp::Cumsum => direct(Cumsum),
        GgmlOp::Mean => custom(|m, t, o| compose::mean(m, t, o.values)),
        GgmlOp::Argmax => custom(|m, t, o| compose::argmax(m, t, o.values)),
        GgmlOp::CountEqual => Opaque(TRAINING),
        GgmlOp::Repeat => direct(Repeat { dims: dims(t.ne()) }),
        GgmlOp::RepeatBack => custom(|m, t, o| compose::repeat_back(m, t, o.values)),
        GgmlOp::Concat(p) => custom(|m, t, o| compose::concat(m, t, p, o.values)),
        GgmlOp::SiluBack => Opaque(TRAINING),
        GgmlOp::Norm(p) => norm(NormKind::Layer, p),
        GgmlOp::RmsNorm(p) => norm(NormKind::Rms, p),
        GgmlOp::RmsNormBack => Opaque(TRAINING),
        GgmlOp::GroupNorm(p) => custom(|m, t, o| compose::group_norm(m, t, p, o.values)),
        GgmlOp::L2Norm(p) => norm(NormKind::L2, p),
        GgmlOp::MulMat(_) => direct(MulMat),
        GgmlOp::MulMatId(_) => direct(MulMatId { window: None }),
        GgmlOp::OutProd => custom(|m, t, o| compose::out_prod(m, t, o.values)),
        // Nothing times a number, and an infinity: as masks are made.
        GgmlOp::Scale(p) if p.scale == 0.0 && p.bias.is_infinite() => {
            direct(Fill { value: p.bias })
        }
        GgmlOp::Scale(p) => direct(Scale {
            scale: p.scale,
            bias: p.bias,
        }),
        GgmlOp::Set(p) => custom(|m, t, o| compose::set(m, t, p, o)),
        GgmlOp::Reshape | GgmlOp::View | GgmlOp::Permute(_) | GgmlOp::Transpose => NoOp,
        GgmlOp::GetRows => direct(GetRows { window: None }),
        GgmlOp::GetRowsBack => Opaque(TRAINING),
        GgmlOp::SetRows => custom(forms::set_rows),
        GgmlOp::Diag => direct(Diag),
        GgmlOp::DiagMaskInf(p) => direct(causal(p, f32::NEG_INFINITY)),
        GgmlOp::DiagMaskZero(p) => direct(causal(p, 0.0)),
        GgmlOp::SoftMax(p) => custom(|m, t, o| forms::soft_max(m, t, p, o.values)),
        GgmlOp::SoftMaxBack => Opaque(TRAINING),
        GgmlOp::Rope(p) => custom(|m, t, o| forms::rope(m, t, p, o.values)),
        GgmlOp::RopeBack(p) => custom(|m, t, o| forms::rope_back(m, t, p, o.values)),
        GgmlOp::Clamp(p) => direct(Clamp {
            min: p.min,
            max: p.max,
        }),
        GgmlOp::ConvTranspose1d | GgmlOp::Im2col => Opaque(IMAGE),
        GgmlOp::Im2colBack => Opaque(TRAINING),
        GgmlOp::Im2col3d
        | GgmlOp::Col2im1d
        | GgmlOp::Conv2d
        | GgmlOp::Conv3d
        | GgmlOp::Conv2dDw
        | GgmlOp::ConvTranspose2d
        | GgmlOp::Pool1d => Opaque(IMAGE),
        GgmlOp::Pool2d(p) => direct(compose::pool_2d(p)),
        GgmlOp::Pool2dBack => Opaque(TRAINING),
        GgmlOp::Upscale => Opaque(IMAGE),
        GgmlOp::Pad(p) => custom(|m, t, o| compose::pad(m, t, p, o.values)),
        GgmlOp::PadReflect1d => Opaque(IMAGE),
        GgmlOp::Roll(p) => custom(|m, t, o| compose::roll(m, t, p, o.values)),
        GgmlOp::Arange(p) => arange(p, t.ne()[0])?,
        GgmlOp::TimestepEmbedding => {
            Opaque("it makes a row of each number: it needs its operands whole")
        }
        GgmlOp::Argsort(p) => direct(ArgSort {
            order: match p.order {
                op::SortOrder::Ascending => SortOrder::Ascending,
                op::SortOrder::Descending => SortOrder::Descending,
            },
        }),
        GgmlOp::TopK => direct(TopK { k: t.ne()[0] }),
        GgmlOp::LeakyRelu(p) => direct(LeakyRelu { slope: p.slope }),
        GgmlOp::Tri(p) => direct(tri(p)),
        GgmlOp::Fill(p) => direct(Fill { value: p.value }),
        GgmlOp::FlashAttnExt(p) => custom(|m, t, o| forms::flash_attn(m, t, p, o.values)),
        GgmlOp::FlashAttnBack => Opaque(TRAINING),
        GgmlOp::SsmConv => direct(SsmConv),
        GgmlOp::SsmScan(p) => packed(p, SsmScan.into())?,
        GgmlOp::WinPart | GgmlOp::WinUnpart | GgmlOp::GetRelPos | GgmlOp::AddRelPos => {
            Opaque(IMAGE)
        }
        GgmlOp::RwkvWkv6 | GgmlOp::GatedLinearAttn | GgmlOp::RwkvWkv7 => Opaque(RECURRENT),
        GgmlOp::SolveTri => Opaque("it solves systems of equations: it needs its operands whole"),
        GgmlOp::GatedDeltaNet(p) => packed(p, GatedDeltaNet.into())?,
        GgmlOp::LightningIndexer => custom(|m, t, o| compose::lightning_indexer(m, t, o.values)),
        GgmlOp::Dsv4HcComb(p) => direct(HcComb {
            eps: p.eps,
            iterations: p.iterations,
        }),
        GgmlOp::Dsv4HcPre(p) => custom(|m, t, o| compose::hc_pre(m, t, p, o.values)),
        GgmlOp::Dsv4HcPost => custom(|m, t, o| compose::hc_post(m, t, o.values)),
        // Names of families: their members have names of their own.
        GgmlOp::Unary | GgmlOp::Glu => {
            return Err(form("a record that does not say what is computed"));
        }
        GgmlOp::MapCustom1 | GgmlOp::MapCustom2 | GgmlOp::MapCustom3 | GgmlOp::Custom => {
            Opaque(CUSTOM)
        }
        GgmlOp::CrossEntropyLoss | GgmlOp::CrossEntropyLossBack | GgmlOp::OptStepSgd => {
            Opaque(TRAINING)
        }
        GgmlOp::OptStepAdamw => custom(compose::adamw),
        GgmlOp::Abs => unary(UnaryKind::Abs),
        GgmlOp::Sgn => unary(UnaryKind::Sgn),
        GgmlOp::Neg => unary(UnaryKind::Neg),
        GgmlOp::Step => unary(UnaryKind::Step),
        GgmlOp::Tanh => unary(UnaryKind::Tanh),
        GgmlOp::Elu => unary(UnaryKind::Elu),
        GgmlOp::Relu => unary(UnaryKind::Relu),
        GgmlOp::Sigmoid => unary(UnaryKind::Sigmoid),
        GgmlOp::Gelu => unary(UnaryKind::Gelu),
        GgmlOp::GeluQuick => unary(UnaryKind::GeluQuick),
        GgmlOp::Silu => unary(UnaryKind::Silu),
        GgmlOp::Hardswish => unary(UnaryKind::Hardswish),
        GgmlOp::Hardsigmoid => unary(UnaryKind::Hardsigmoid),
        GgmlOp::Exp => unary(UnaryKind::Exp),
        GgmlOp::Expm1 => unary(UnaryKind::Expm1),
        GgmlOp::Softplus => unary(UnaryKind::Softplus),
        GgmlOp::GeluErf => unary(UnaryKind::GeluErf),
        GgmlOp::Xielu(p) => direct(Xielu {
            alpha_n: p.alpha_n,
            alpha_p: p.alpha_p,
            beta: p.beta,
            eps: p.eps,
        }),
        GgmlOp::Floor => unary(UnaryKind::Floor),
        GgmlOp::Ceil => unary(UnaryKind::Ceil),
        GgmlOp::Round => unary(UnaryKind::Round),
        GgmlOp::Trunc => unary(UnaryKind::Trunc),
        GgmlOp::Reglu(p) => glu(GluKind::Reglu, p),
        GgmlOp::Geglu(p) => glu(GluKind::Geglu, p),
        GgmlOp::Swiglu(p) => glu(GluKind::Swiglu, p),
        GgmlOp::SwigluOai(p) => glu(GluKind::SwigluOai, p),
        GgmlOp::GegluErf(p) => glu(GluKind::GegluErf, p),
        GgmlOp::GegluQuick(p) => glu(GluKind::GegluQuick, p),
        GgmlOp::SwigluClamp(p) => glu(GluKind::SwigluClamp, p),
    })
}

/// A recurrence that keeps the state of one token.
fn packed<'t>(p: &op::Recurrence, op: Op) -> Result<OpLowering<'t>, OpaqueReason> {
    match p.n_states {
        0 | 1 => Ok(OpLowering::Packed(op)),
        _ => Err(form("states after several tokens")),
    }
}

/// The numbers from `start` below `stop`, as many as the result has.
fn arange<'t>(p: &op::Arange, n: u64) -> Result<OpLowering<'t>, OpaqueReason> {
    let steps = ((p.stop - p.start) / p.step).ceil();
    if steps != n as f32 {
        return Err(form("a range of another length than its result"));
    }
    Ok(direct(Arange {
        start: p.start,
        step: p.step,
        n: Dim::constant(n),
    }))
}

/// Row `i` sees the first `i + n_past + 1` columns.
fn causal(p: &op::DiagMask, fill: f32) -> Tri {
    Tri {
        keep: Side::LowerDiag,
        offset: p.n_past,
        fill,
    }
}

fn tri(p: &op::Tri) -> Tri {
    let keep = match p.kind {
        op::TriKind::UpperDiag => Side::UpperDiag,
        op::TriKind::Upper => Side::Upper,
        op::TriKind::LowerDiag => Side::LowerDiag,
        op::TriKind::Lower => Side::Lower,
    };
    let (offset, fill) = (0, 0.0);
    Tri { keep, offset, fill }
}
