//! The gated delta rule of Qwen 3.5 and Qwen 3 Next: a convolution along time over queries, keys and values, then a
//! memory per value head that decays, is corrected, and is read.

use tpc_ir::op::{Concat, Repeat, Unary, UnaryKind};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::conv;
use super::delta_rule::{self, RuleOperands, RuleSizes};
use super::state;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::norm;
use crate::description::{GateForm, KeyHeads, Presence};
use crate::error::ArchError;
use crate::hparams::DeltaNetHParams;
use crate::source::{Form, TensorRole};

struct Projections {
    /// Queries, keys and values before the convolution, `[channels, n_tokens]`.
    qkv: Value,
    /// Output gate, `[value_width, n_tokens]`.
    gate: Value,
}

/// Logits of decay and correction, `[value_heads, n_tokens]` each.
#[derive(Clone, Copy)]
struct Gates {
    decay: Value,
    correction: Value,
}

pub(super) fn delta_net(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &DeltaNetHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let projected = project(b, cx, hp, x)?;
    let gates = gates(b, cx, hp, x)?;
    let qkv = conv::apply(b, cx, &hp.conv, projected.qkv)?;
    let kind = UnaryKind::Silu;
    let qkv = b.push(Unary { kind }, vec![qkv], "conv_output_silu")?;
    let q = key_heads(b, cx, hp, qkv, 0, "q_conv")?;
    let k = key_heads(b, cx, hp, qkv, hp.key_width, "k_conv")?;
    let (start, len) = (2 * hp.key_width, hp.value_width.n.into());
    let v = b.slice(qkv, 0, start, len, "v_conv")?;
    let y = remember(b, cx, hp, [q, k, v], gates)?;
    let y = norm::with_weight(
        b,
        &cx.model,
        "ssm_norm",
        &[hp.value_dim],
        y,
        "attn_out_norm",
    )?;
    let by_head = [hp.value_dim.n.into(), hp.value_heads.n.into(), b.n_tokens()];
    let z = b.reshape(projected.gate, by_head, "z")?;
    let kind = hp.form.out_gate;
    let z = b.push(Unary { kind }, vec![z], "z_act")?;
    let y = b.mul(y, z, "attn_out_gated")?;
    let y = b.reshape(y, [hp.value_width.n.into(), b.n_tokens()], "final_output")?;
    let sizes = [hp.value_width, cx.model.hparams.embd()];
    b.project("ssm_out", y, sizes, "linear_attn_out")
}

fn project(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &DeltaNetHParams,
    x: Value,
) -> Result<Projections, ArchError> {
    const FUSED: &str = "ssm_in";
    let embd = cx.model.hparams.embd();
    let one =
        |b: &mut Builder<'_>, tensor, columns, name| b.project(tensor, x, [embd, columns], name);
    let has_qkv = b.offers(&b.tensor_name("attn_qkv", "weight"), Form::Usual);
    let fused = b.tensor_name(FUSED, "weight");
    if has_qkv || !b.offers(&fused, Form::Unusual) {
        b.ignore(&fused);
        return Ok(Projections {
            qkv: one(b, "attn_qkv", hp.conv.channels, "qkv_mixed")?,
            gate: one(b, "attn_gate", hp.value_width, "z")?,
        });
    }
    // Per key head: query, key, values and their gates.
    let y = one(b, FUSED, hp.with_gate, "mixed_qkvz")?;
    let values = hp.value_width.n / hp.key_heads;
    let each: Dim = (hp.with_gate.n / hp.key_heads).into();
    let y = b.reshape(y, [each, hp.key_heads.into(), b.n_tokens()], "mixed_qkvz")?;
    let part = |b: &mut Builder<'_>, start, len: u64, name| {
        let y = b.slice(y, 0, start, len.into(), name)?;
        b.reshape(y, [(len * hp.key_heads).into(), b.n_tokens()], name)
    };
    let q = part(b, 0, hp.key_dim, "q_mixed")?;
    let k = part(b, hp.key_dim, hp.key_dim, "k_mixed")?;
    let v = part(b, 2 * hp.key_dim, values, "v_mixed")?;
    let gate = part(b, 2 * hp.key_dim + values, values, "z")?;
    let qk = b.push(Concat { axis: 0 }, vec![q, k], "qk_mixed")?;
    let qkv = b.push(Concat { axis: 0 }, vec![qk, v], "qkv_mixed")?;
    Ok(Projections { qkv, gate })
}

fn gates(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &DeltaNetHParams,
    x: Value,
) -> Result<Gates, ArchError> {
    const FUSED: &str = "ssm_ba";
    let embd = cx.model.hparams.embd();
    let one =
        |b: &mut Builder<'_>, tensor, columns, name| b.project(tensor, x, [embd, columns], name);
    let (fused, separate) = match hp.form.gates {
        GateForm::Separate => (Form::Unusual, Form::Usual),
        GateForm::Fused => (Form::Usual, Form::Unusual),
    };
    let has_fused = b.offers(&b.tensor_name(FUSED, "weight"), fused);
    let has_separate = b.offers(&b.tensor_name("ssm_alpha", "weight"), separate);
    if !has_fused && (hp.form.gates == GateForm::Separate || has_separate) {
        return Ok(Gates {
            decay: one(b, "ssm_alpha", hp.value_heads, "alpha")?,
            correction: one(b, "ssm_beta", hp.value_heads, "beta")?,
        });
    }
    let y = one(b, FUSED, hp.both_gates, "mixed_ba")?;
    let each = hp.value_heads.n / hp.key_heads;
    let dims = [(2 * each).into(), hp.key_heads.into(), b.n_tokens()];
    let y = b.reshape(y, dims, "mixed_ba")?;
    let part = |b: &mut Builder<'_>, start, name| {
        let y = b.slice(y, 0, start, each.into(), name)?;
        b.reshape(y, [hp.value_heads.n.into(), b.n_tokens()], name)
    };
    Ok(Gates {
        correction: part(b, 0, "beta")?,
        decay: part(b, each, "alpha")?,
    })
}

/// Returns unit-length heads from the convolved queries or keys, `[key_dim, heads, n_seq_tokens, n_seqs]`. If
/// consecutive value heads share a key head, `heads` is the number of value heads.
fn key_heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &DeltaNetHParams,
    qkv: Value,
    start: u64,
    name: &str,
) -> Result<Value, ArchError> {
    let (d, n): (Dim, Dim) = (hp.key_dim.into(), hp.key_heads.into());
    let x = b.slice(qkv, 0, start, hp.key_width.into(), name)?;
    let x = delta_rule::unit_heads(b, cx, x, [hp.key_dim, hp.key_heads], None, name)?;
    let [n_t, n_s] = state::tokens();
    let times = hp.value_heads.n / hp.key_heads;
    if hp.form.key_heads == KeyHeads::Interleaved || times == 1 {
        return b.reshape(x, [d, n, n_t, n_s], name);
    }
    let x = b.reshape(x, [d.clone(), Dim::ONE, n.clone(), b.n_tokens()], name)?;
    let dims = [d.clone(), times.into(), n, b.n_tokens()];
    let dims = TensorType::new(DType::F32, dims).dims;
    let x = b.push(Repeat { dims }, vec![x], name)?;
    b.reshape(x, [d, hp.value_heads.n.into(), n_t, n_s], name)
}

/// Returns the delta rule's output, `[value_dim, value_heads, n_tokens]`.
fn remember(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &DeltaNetHParams,
    [q, k, v]: [Value; 3],
    gates: Gates,
) -> Result<Value, ArchError> {
    let unary = |b: &mut Builder<'_>, kind, x, name| b.push(Unary { kind }, vec![x], name);
    let step = b.add_bias(
        "ssm_dt",
        gates.decay,
        hp.value_heads,
        Presence::Required,
        "a",
    )?;
    let step = unary(b, UnaryKind::Softplus, step, "a_softplus")?;
    let decay = b.bare_name("ssm_a");
    let decay = b.require(&decay, &[hp.value_heads], TensorRole::Decay)?;
    let decay = b.mul(step, decay, "gate")?;
    let sizes = RuleSizes {
        key_dim: hp.key_dim,
        value_dim: hp.value_dim.n,
        heads: hp.value_heads.n,
        decays: 1,
    };
    let operands = RuleOperands {
        q,
        k,
        v,
        decay,
        correction: gates.correction,
    };
    delta_rule::remember(b, cx, &sizes, operands)
}
