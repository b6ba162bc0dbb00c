//! The lowering of ggml's ops to IR ops. The match has no wildcard: every op that `crate::op`'s table declares as
//! lowered needs an arm.

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
use crate::op::{self, GgmlOp, LoweredOp, Lowering};

pub(super) type Build<'t> = Box<
    dyn FnOnce(&mut Memory<'_>, &Record, Operands<'_>) -> Result<Vec<Value>, OpaqueReason> + 't,
>;

pub(super) enum OpLowering<'t> {
    Direct(Op),
    /// An IR op whose results ggml packs into one tensor.
    Packed(Op),
    /// Several ops, or an op on other operands.
    Custom(Build<'t>),
}

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
    custom(move |m, t, o| forms::gate(m, t, kind, p, o.values))
}

fn direct<'t>(op: impl Into<Op>) -> OpLowering<'t> {
    OpLowering::Direct(op.into())
}

fn custom<'t>(
    build: impl FnOnce(&mut Memory<'_>, &Record, Operands<'_>) -> Result<Vec<Value>, OpaqueReason> + 't,
) -> OpLowering<'t> {
    OpLowering::Custom(Box::new(build))
}

/// Returns the lowering of a record.
pub(super) fn lowering(t: &Record) -> Result<OpLowering<'_>, OpaqueReason> {
    let op = t.op.lowered().ok_or_else(|| opaque_reason(&t.op))?;
    Ok(match op {
        LoweredOp::Dup(()) | LoweredOp::Cpy(()) | LoweredOp::Cont(()) => {
            custom(|m, t, o| compose::copy(m, t, o.values))
        }
        LoweredOp::Add(()) | LoweredOp::Add1(()) => binary(BinaryKind::Add),
        LoweredOp::AddId(()) => direct(AddId { window: None }),
        LoweredOp::Acc(p) => custom(|m, t, o| compose::accumulate(m, t, p, o)),
        LoweredOp::Sub(()) => binary(BinaryKind::Sub),
        LoweredOp::Mul(()) => binary(BinaryKind::Mul),
        LoweredOp::Div(()) => binary(BinaryKind::Div),
        LoweredOp::Sqr(()) => unary(UnaryKind::Sqr),
        LoweredOp::Sqrt(()) => unary(UnaryKind::Sqrt),
        LoweredOp::Log(()) => unary(UnaryKind::Log),
        LoweredOp::Sin(()) => unary(UnaryKind::Sin),
        LoweredOp::Cos(()) => unary(UnaryKind::Cos),
        LoweredOp::Sum(()) => custom(|m, t, o| compose::sum(m, t, o.values)),
        LoweredOp::SumRows(()) => direct(Sum { axis: 0 }),
        LoweredOp::Cumsum(()) => direct(Cumsum),
        LoweredOp::Mean(()) => custom(|m, t, o| compose::mean(m, t, o.values)),
        LoweredOp::Argmax(()) => custom(|m, t, o| compose::argmax(m, t, o.values)),
        LoweredOp::Repeat(()) => direct(Repeat { dims: dims(t.ne()) }),
        LoweredOp::RepeatBack(()) => custom(|m, t, o| compose::repeat_back(m, t, o.values)),
        LoweredOp::Concat(p) => custom(|m, t, o| compose::concat(m, t, p, o.values)),
        LoweredOp::Norm(p) => norm(NormKind::Layer, p),
        LoweredOp::RmsNorm(p) => norm(NormKind::Rms, p),
        LoweredOp::GroupNorm(p) => custom(|m, t, o| compose::group_norm(m, t, p, o.values)),
        LoweredOp::L2Norm(p) => norm(NormKind::L2, p),
        LoweredOp::MulMat(_) => direct(MulMat),
        LoweredOp::MulMatId(_) => direct(MulMatId { window: None }),
        LoweredOp::OutProd(()) => custom(|m, t, o| compose::out_prod(m, t, o.values)),
        // A scale by 0 plus an infinite bias fills a mask.
        LoweredOp::Scale(p) if p.scale == 0.0 && p.bias.is_infinite() => {
            direct(Fill { value: p.bias })
        }
        LoweredOp::Scale(p) => direct(Scale {
            scale: p.scale,
            bias: p.bias,
        }),
        LoweredOp::Set(p) => custom(|m, t, o| compose::set(m, t, p, o)),
        LoweredOp::GetRows(()) => direct(GetRows { window: None }),
        LoweredOp::SetRows(()) => custom(forms::set_rows),
        LoweredOp::Diag(()) => direct(Diag),
        LoweredOp::DiagMaskInf(p) => direct(causal(p, f32::NEG_INFINITY)),
        LoweredOp::DiagMaskZero(p) => direct(causal(p, 0.0)),
        LoweredOp::SoftMax(p) => custom(|m, t, o| forms::soft_max(m, t, p, o.values)),
        LoweredOp::Rope(p) => custom(|m, t, o| forms::rope(m, t, p, o.values)),
        LoweredOp::RopeBack(p) => custom(|m, t, o| forms::rope_back(m, t, p, o.values)),
        LoweredOp::Clamp(p) => direct(Clamp {
            min: p.min,
            max: p.max,
        }),
        LoweredOp::Pool2d(p) => direct(compose::pool_2d(p)),
        LoweredOp::Pad(p) => custom(|m, t, o| compose::pad(m, t, p, o.values)),
        LoweredOp::Roll(p) => custom(|m, t, o| compose::roll(m, t, p, o.values)),
        LoweredOp::Arange(p) => arange(p, t.ne()[0])?,
        LoweredOp::Argsort(p) => direct(ArgSort {
            order: match p.order {
                op::SortOrder::Ascending => SortOrder::Ascending,
                op::SortOrder::Descending => SortOrder::Descending,
            },
        }),
        LoweredOp::TopK(()) => direct(TopK { k: t.ne()[0] }),
        LoweredOp::LeakyRelu(p) => direct(LeakyRelu { slope: p.slope }),
        LoweredOp::Tri(p) => direct(tri(p)),
        LoweredOp::Fill(p) => direct(Fill { value: p.value }),
        LoweredOp::FlashAttnExt(p) => custom(|m, t, o| forms::flash_attn(m, t, p, o.values)),
        LoweredOp::SsmConv(()) => direct(SsmConv),
        LoweredOp::SsmScan(p) => packed_recurrence(p, SsmScan.into())?,
        LoweredOp::GatedDeltaNet(p) => packed_recurrence(p, GatedDeltaNet.into())?,
        LoweredOp::LightningIndexer(()) => {
            custom(|m, t, o| compose::lightning_indexer(m, t, o.values))
        }
        LoweredOp::Dsv4HcComb(p) => direct(HcComb {
            eps: p.eps,
            iterations: p.iterations,
        }),
        LoweredOp::Dsv4HcPre(p) => custom(|m, t, o| compose::hc_pre(m, t, p, o.values)),
        LoweredOp::Dsv4HcPost(()) => custom(|m, t, o| compose::hc_post(m, t, o.values)),
        LoweredOp::TopKMask(()) => custom(forms::top_k_mask),
        LoweredOp::OptStepAdamw(()) => custom(compose::adamw),
        LoweredOp::Abs(()) => unary(UnaryKind::Abs),
        LoweredOp::Sgn(()) => unary(UnaryKind::Sgn),
        LoweredOp::Neg(()) => unary(UnaryKind::Neg),
        LoweredOp::Step(()) => unary(UnaryKind::Step),
        LoweredOp::Tanh(()) => unary(UnaryKind::Tanh),
        LoweredOp::Elu(()) => unary(UnaryKind::Elu),
        LoweredOp::Relu(()) => unary(UnaryKind::Relu),
        LoweredOp::Sigmoid(()) => unary(UnaryKind::Sigmoid),
        LoweredOp::Gelu(()) => unary(UnaryKind::Gelu),
        LoweredOp::GeluQuick(()) => unary(UnaryKind::GeluQuick),
        LoweredOp::Silu(()) => unary(UnaryKind::Silu),
        LoweredOp::Hardswish(()) => unary(UnaryKind::Hardswish),
        LoweredOp::Hardsigmoid(()) => unary(UnaryKind::Hardsigmoid),
        LoweredOp::Exp(()) => unary(UnaryKind::Exp),
        LoweredOp::Expm1(()) => unary(UnaryKind::Expm1),
        LoweredOp::Softplus(()) => unary(UnaryKind::Softplus),
        LoweredOp::GeluErf(()) => unary(UnaryKind::GeluErf),
        LoweredOp::Xielu(p) => direct(Xielu {
            alpha_n: p.alpha_n,
            alpha_p: p.alpha_p,
            beta: p.beta,
            eps: p.eps,
        }),
        LoweredOp::Floor(()) => unary(UnaryKind::Floor),
        LoweredOp::Ceil(()) => unary(UnaryKind::Ceil),
        LoweredOp::Round(()) => unary(UnaryKind::Round),
        LoweredOp::Trunc(()) => unary(UnaryKind::Trunc),
        LoweredOp::Reglu(p) => glu(GluKind::Reglu, p),
        LoweredOp::Geglu(p) => glu(GluKind::Geglu, p),
        LoweredOp::Swiglu(p) => glu(GluKind::Swiglu, p),
        LoweredOp::SwigluOai(p) => glu(GluKind::SwigluOai, p),
        LoweredOp::GegluErf(p) => glu(GluKind::GegluErf, p),
        LoweredOp::GegluQuick(p) => glu(GluKind::GegluQuick, p),
        LoweredOp::SwigluClamp(p) => glu(GluKind::SwigluClamp, p),
    })
}

fn opaque_reason(op: &GgmlOp) -> OpaqueReason {
    match (op, op.kind().map(|kind| kind.facts().lowering)) {
        (GgmlOp::Malformed(_, error), _) => OpaqueReason::Form(error.to_string()),
        (_, None) => OpaqueReason::Unknown,
        (_, Some(Lowering::Opaque(why))) => OpaqueReason::NoRule(why),
        (_, Some(Lowering::Memory | Lowering::Generic | Lowering::Lowered)) => {
            form("a record without a computation")
        }
    }
}

fn packed_recurrence<'t>(p: &op::Recurrence, op: Op) -> Result<OpLowering<'t>, OpaqueReason> {
    match p.n_states {
        0 | 1 => Ok(OpLowering::Packed(op)),
        _ => Err(form("states after several tokens")),
    }
}

fn arange<'t>(p: &op::Arange, n: u64) -> Result<OpLowering<'t>, OpaqueReason> {
    let steps = ((p.stop - p.start) / p.step).ceil();
    if steps != n as f32 {
        return Err(form("a range whose length differs from its result's"));
    }
    Ok(direct(Arange::new(p.start, p.step, Dim::constant(n))))
}

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
