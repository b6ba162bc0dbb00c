//! Kimi's delta attention: separate convolutions along time over queries, keys and values, then the gated delta rule
//! with a decay per key element.

use tpc_ir::Value;
use tpc_ir::op::{Unary, UnaryKind};

use super::delta_rule::{self, RuleOperands, RuleSizes};
use super::{conv, state};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::norm;
use crate::description::{DecayShape, KdaDecay, Presence};
use crate::error::ArchError;
use crate::hparams::KdaHParams;
use crate::size::Size;
use crate::source::TensorRole;

pub(super) fn kda(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &KdaHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let [q, k, v] = convolve(b, cx, hp, x)?;
    let decay = decay(b, cx, hp, x)?;
    let sizes = [embd, hp.heads];
    let correction = b.project("ssm_beta", x, sizes, "beta")?;
    let sizes = RuleSizes {
        key_dim: hp.head_dim.n,
        value_dim: hp.head_dim.n,
        heads: hp.heads.n,
        decays: hp.head_dim.n,
    };
    let operands = RuleOperands {
        q,
        k,
        v,
        decay,
        correction,
    };
    let y = delta_rule::remember(b, cx, &sizes, operands)?;
    let y = norm::with_weight(b, &cx.model, "ssm_norm", &[hp.head_dim], y, "kda_normed")?;
    let gate = project(b, cx, hp, hp.form.gate_tensors, x, "kda_gate")?;
    let kind = UnaryKind::Sigmoid;
    let gate = b.push(Unary { kind }, vec![gate], "kda_gate_sigmoid")?;
    let by_head = [hp.head_dim.n.into(), hp.heads.n.into(), b.n_tokens()];
    let gate = b.reshape(gate, by_head, "kda_gate_sigmoid")?;
    let y = b.mul(y, gate, "kda_gated")?;
    let y = b.reshape(y, [hp.width.n.into(), b.n_tokens()], "kda_gated")?;
    b.project("attn_output", y, [hp.width, embd], "kda_out")
}

/// Returns unit-length queries and keys, `[head_dim, heads, n_seq_tokens, n_seqs]`, and values, `[width, n_tokens]`.
fn convolve(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &KdaHParams,
    x: Value,
) -> Result<[Value; 3], ArchError> {
    let embd = cx.model.hparams.embd();
    let one = |b: &mut Builder<'_>, i: usize, tensor, name| {
        let y = b.project(tensor, x, [embd, hp.width], name)?;
        let y = conv::apply(b, cx, &hp.convs[i], y)?;
        let kind = UnaryKind::Silu;
        b.push(Unary { kind }, vec![y], name)
    };
    let sizes = [hp.head_dim.n, hp.heads.n];
    let unit = |b: &mut Builder<'_>, x, name| {
        let x = delta_rule::unit_heads(b, cx, x, sizes, hp.form.unit_eps, name)?;
        let [n_t, n_s] = state::tokens();
        b.reshape(x, [hp.head_dim.n.into(), hp.heads.n.into(), n_t, n_s], name)
    };
    let q = one(b, 0, "attn_q", "Qcur")?;
    let k = one(b, 1, "attn_k", "Kcur")?;
    let v = one(b, 2, "attn_v", "Vcur")?;
    Ok([unit(b, q, "Qcur")?, unit(b, k, "Kcur")?, v])
}

/// Returns the logarithms of the decays, `[width, n_tokens]`.
fn decay(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &KdaHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let step = project(b, cx, hp, hp.form.decay_tensors, x, "kda_step")?;
    let step = b.add_bias("ssm_dt", step, hp.width, Presence::Required, "kda_step")?;
    let unary = |b: &mut Builder<'_>, kind, x| b.push(Unary { kind }, vec![x], "kda_decay");
    let by_head = [hp.head_dim.n.into(), hp.heads.n.into(), b.n_tokens()];
    let per_head = b.bare_name("ssm_a");
    let one = Size::new(1, "one number per head");
    let per_head = match hp.form.decay_shape {
        DecayShape::Column => b.require(&per_head, &[one, hp.heads], TensorRole::Decay)?,
        DecayShape::Row => {
            let row = b.require(&per_head, &[hp.heads], TensorRole::Decay)?;
            b.reshape(row, [1.into(), hp.heads.n.into()], "kda_a")?
        }
    };
    let decay = match hp.bound {
        None => {
            let step = unary(b, UnaryKind::Softplus, step)?;
            let step = b.reshape(step, by_head, "kda_step")?;
            b.mul(step, per_head, "kda_decay")?
        }
        Some(bound) => {
            let step = b.reshape(step, by_head, "kda_step")?;
            let mut logit = b.mul(step, per_head, "kda_decay")?;
            if hp.form.decay == KdaDecay::SoftplusOrBounded {
                // `ssm_a` is stored with the negative sign that the softplus form needs.
                logit = unary(b, UnaryKind::Neg, logit)?;
            }
            let share = unary(b, UnaryKind::Sigmoid, logit)?;
            b.scale(share, bound, "kda_decay")?
        }
    };
    b.reshape(decay, [hp.width.n.into(), b.n_tokens()], "kda_decay")
}

/// Multiplies these matrices with `x` in turn; the result is `[width, n_tokens]`. All but the last project to a head's
/// elements.
fn project(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &KdaHParams,
    tensors: &[&str],
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let (mut x, mut rows) = (x, cx.model.hparams.embd());
    for (i, tensor) in tensors.iter().enumerate() {
        let columns = if i + 1 == tensors.len() {
            hp.width
        } else {
            hp.head_dim
        };
        x = b.project(tensor, x, [rows, columns], name)?;
        rows = columns;
    }
    Ok(x)
}
