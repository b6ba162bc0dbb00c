//! Lightning attention. Keys and values write a memory per head, which decays at the head's own rate. Queries read it.

use tpc_ir::Value;
use tpc_ir::op::{Arange, Fill, Unary, UnaryKind};

use super::scan::{self, ScanInputs, ScanSizes};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::norm;
use crate::error::ArchError;
use crate::hparams::LightningHParams;

/// Step size whose softplus is 1: a scan then decays by the rate itself and does not scale inputs.
const UNIT_STEP: f32 = 0.541_324_85;

/// Constant part of the layer factor, which keeps the last layer's rates above 0.
const LEAST_SHARE: f64 = 1e-5;

pub(super) fn lightning(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LightningHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let sizes = [embd, hp.projected];
    let qkv = b.project("attn_qkv", x, sizes, "QKVcur")?;
    let kind = UnaryKind::Silu;
    let qkv = b.push(Unary { kind }, vec![qkv], "QKVcur_silu")?;
    let each = [(3 * hp.head_dim).into(), hp.heads.into(), b.n_tokens()];
    let qkv = b.reshape(qkv, each, "QKVcur_silu")?;
    let part = |b: &mut Builder<'_>, i: u64, name| {
        let y = b.slice(qkv, 0, i * hp.head_dim, hp.head_dim.into(), name)?;
        b.reshape(y, [hp.width.n.into(), b.n_tokens()], name)
    };
    let q = part(b, 0, "Qcur")?;
    let k = part(b, 1, "Kcur")?;
    let v = part(b, 2, "Vcur")?;
    let y = remember(b, cx, hp, [q, k, v])?;
    let y = norm::with_weight(b, &cx.model, "attn_norm_2", &[hp.width], y, "qkv_norm")?;
    let gate = b.project("attn_gate", x, [embd, hp.width], "g")?;
    let kind = UnaryKind::Sigmoid;
    let gate = b.push(Unary { kind }, vec![gate], "g_sigm")?;
    let y = b.mul(gate, y, "qkv_gated")?;
    b.project("attn_output", y, [hp.width, embd], "attn_out")
}

/// Returns the outputs of the memories, `[width, n_tokens]`.
fn remember(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LightningHParams,
    [q, k, v]: [Value; 3],
) -> Result<Value, ArchError> {
    let decay = rates(b, cx, hp)?;
    let dims = [hp.head_dim.into(), hp.heads.into(), b.n_tokens()];
    let by_head = b.reshape(v, dims, "Vcur")?;
    let first = b.slice(by_head, 0, 0, 1.into(), "unit_step")?;
    let step = b.push(Fill { value: UNIT_STEP }, vec![first], "unit_step")?;
    let sizes = ScanSizes {
        d_state: hp.head_dim,
        head_dim: hp.head_dim,
        heads: hp.heads,
        groups: hp.heads,
    };
    let inputs = ScanInputs {
        x: v,
        dt: step,
        decay,
        taken: k,
        read: q,
    };
    let [y, _] = scan::scan(b, cx, &sizes, inputs)?;
    b.reshape(y, [hp.width.n.into(), b.n_tokens()], "qkv")
}

/// Returns each head's logarithmic decay per token, `[1, heads]`: ALiBi's slopes times a factor that shrinks from layer
/// to layer.
fn rates(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &LightningHParams,
) -> Result<Value, ArchError> {
    let ratio = -(-((hp.heads as f64).log2() - 3.0)).exp2() * std::f64::consts::LN_2;
    let slopes = Arange::new(ratio as f32, ratio as f32, hp.heads.into());
    let last = cx.model.hparams.n_layer_all.saturating_sub(1).max(1);
    let share = 1.0 - f64::from(cx.layer.index) / last as f64 + LEAST_SHARE;
    let slopes = b.push(slopes, Vec::new(), "slopes")?;
    let slopes = b.push(
        Unary {
            kind: UnaryKind::Exp,
        },
        vec![slopes],
        "slopes",
    )?;
    let rates = b.scale(slopes, -share as f32, "slope_rate")?;
    b.reshape(rates, [1.into(), hp.heads.into()], "slope_rate")
}
