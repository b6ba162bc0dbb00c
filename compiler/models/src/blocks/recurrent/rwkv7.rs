//! RWKV 7's time mix: mixtures of each token and the previous one, then a memory per head. Each token decays the memory,
//! replaces the value at a key, and adds its own.

use tpc_ir::op::{Binary, BinaryKind, Norm, NormKind, Sum, UnaryKind};
use tpc_ir::{Dim, Value};

use super::token_shift;
use super::wkv::{self, Extra, WkvInputs};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::Rwkv7HParams;
use crate::size::Size;
use crate::source::{Form, TensorRole};

/// Logarithm of the strongest decay, `-e^(-1/2)`.
const STRONGEST: f32 = -0.606_531;

/// Epsilon of the keys' length.
const EPSILON: f32 = 1e-12;

pub(super) fn rwkv7(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv7HParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let wide = [embd, embd];
    let gate = gate_rank(b, hp);
    let [xr, xw, xk, xv, xa, xg] = mixtures(b, cx, gate.is_some(), x)?;
    let r = b.project("time_mix_receptance", xr, wide, "r")?;
    let low = b.project("time_mix_w1", xw, [embd, hp.decay], "w")?;
    let low = b.unary(&[UnaryKind::Tanh], low, "w")?;
    let w = raised(b, cx, ["time_mix_w2", "time_mix_w0"], hp.decay, low)?;
    let w = b.unary(&[UnaryKind::Sigmoid], w, "w")?;
    let w = b.scale(w, STRONGEST, "w")?;
    let w = b.unary(&[UnaryKind::Exp], w, "w")?;
    let k = b.project("time_mix_key", xk, wide, "k")?;
    let v = b.project("time_mix_value", xv, wide, "v")?;
    let v = with_first(b, cx, hp, xv, v)?;
    let low = b.project("time_mix_a1", xa, [embd, hp.rate], "a")?;
    let a = raised(b, cx, ["time_mix_a2", "time_mix_a0"], hp.rate, low)?;
    let a = b.unary(&[UnaryKind::Sigmoid], a, "a")?;
    let removed = unit_keys(b, cx, hp, k)?;
    let share = vector(b, cx, "time_mix_k_a")?;
    let added = b.mul(k, share, "ka")?;
    let less = b.mul(a, added, "ka")?;
    let kind = BinaryKind::Sub;
    let less = b.push(Binary { kind }, vec![less, added], "ka")?;
    let k = b.add(k, less, "k")?;
    let read = b.unary(&[UnaryKind::Neg], removed, "kk_neg")?;
    let back = b.mul(removed, a, "kk_a")?;
    let inputs = WkvInputs { r, w, k, v };
    let y = wkv::remember(b, cx, hp.heads, inputs, Extra::Correction([read, back]))?;
    let y = wkv::normed(b, cx, hp.heads, hp.form.norm, y)?;
    let own = own_values(b, cx, hp, inputs)?;
    let mut y = b.add(y, own, "wkv_own")?;
    if let Some(rank) = gate {
        let low = b.project("time_mix_g1", xg, [embd, rank], "g")?;
        let low = b.unary(&[UnaryKind::Sigmoid], low, "g")?;
        let g = b.project("time_mix_g2", low, [rank, embd], "g")?;
        y = b.mul(y, g, "wkv_gated")?;
    }
    b.project("time_mix_output", y, wide, "time_mix_out")
}

/// Returns the gate's rank, if the model has a gate.
fn gate_rank(b: &Builder<'_>, hp: &Rwkv7HParams) -> Option<Size> {
    let offers = |tensor| b.offers(&b.tensor_name(tensor, "weight"), Form::Usual);
    let offered = || offers("time_mix_g1") || offers("time_mix_g2");
    hp.gate
        .filter(|_| hp.form.gate == Presence::Required || offered())
}

/// Returns the mixtures for receptance, decay, keys, values, rate and gate. Without a gate the last is unused.
fn mixtures(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    gated: bool,
    x: Value,
) -> Result<[Value; 6], ArchError> {
    let n = if gated { 6 } else { 5 };
    let back = token_shift::step_back(b, cx, "cache_r", x)?;
    let shares = token_shift::shares(b, cx, n)?;
    let mut out = [x; 6];
    for (i, out) in (0..n).zip(&mut out) {
        let share = b.slice(shares, 1, i, Dim::ONE, "x_share")?;
        let step = b.mul(back, share, "x_step")?;
        *out = b.add(step, x, "x_mixed")?;
    }
    Ok(out)
}

fn vector(b: &mut Builder<'_>, cx: &LayerContext<'_>, tensor: &str) -> Result<Value, ArchError> {
    let name = b.tensor_name(tensor, "weight");
    b.require(&name, &[cx.model.hparams.embd()], TensorRole::Scale)
}

/// Returns the matrix's product with `low` plus the vector.
fn raised(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    [matrix, vector]: [&str; 2],
    rank: Size,
    low: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let y = b.project(matrix, low, [rank, embd], matrix)?;
    let base = b.tensor_name(vector, "weight");
    let base = b.require(&base, &[embd], TensorRole::Bias)?;
    b.add(y, base, matrix)
}

/// Moves values towards the first layer's by a share. The first layer has the share's tensors but does not use them.
fn with_first(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv7HParams,
    x: Value,
    v: Value,
) -> Result<Value, ArchError> {
    const BASE: &str = "time_mix_v0";
    const DOWN: &str = "time_mix_v1";
    const UP: &str = "time_mix_v2";
    let embd = cx.model.hparams.embd();
    let Some(first) = b.first_values() else {
        b.note_first_values(v);
        let (matrix, required) = (TensorRole::Matrix, Presence::Required);
        let unused: [(&str, Vec<Size>, TensorRole); 3] = [
            (BASE, vec![embd], TensorRole::Bias),
            (DOWN, vec![embd, hp.rate], matrix),
            (UP, vec![hp.rate, embd], matrix),
        ];
        for (tensor, sizes, role) in unused {
            let name = b.tensor_name(tensor, "weight");
            b.find(&name, &sizes, role, required)?;
        }
        return Ok(v);
    };
    let low = b.project(DOWN, x, [embd, hp.value], "v_share")?;
    let share = raised(b, cx, [UP, BASE], hp.value, low)?;
    let share = b.unary(&[UnaryKind::Sigmoid], share, "v_share")?;
    let kind = BinaryKind::Sub;
    let step = b.push(Binary { kind }, vec![first, v], "v_step")?;
    let step = b.mul(step, share, "v_step")?;
    b.add(v, step, "v")
}

/// Returns the keys that the correction removes, of unit length per head.
fn unit_keys(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv7HParams,
    k: Value,
) -> Result<Value, ArchError> {
    let share = vector(b, cx, "time_mix_k_k")?;
    let y = b.mul(k, share, "kk")?;
    let y = wkv::by_head(b, hp.heads, y, "kk")?;
    let unit = Norm {
        kind: NormKind::L2,
        eps: EPSILON,
    };
    let y = b.push(unit, vec![y], "kk")?;
    b.reshape(y, [cx.model.hparams.n_embd.into(), b.n_tokens()], "kk")
}

/// Returns each token's own values, weighted by the product of its key and receptance.
fn own_values(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv7HParams,
    inputs: WkvInputs,
) -> Result<Value, ArchError> {
    let share = vector(b, cx, "time_mix_r_k")?;
    let weights = b.mul(inputs.k, inputs.r, "rk")?;
    let weights = b.mul(weights, share, "rk")?;
    let weights = wkv::by_head(b, hp.heads, weights, "rk")?;
    let sums = b.push(Sum { axis: 0 }, vec![weights], "rk_sum")?;
    let v = wkv::by_head(b, hp.heads, inputs.v, "v")?;
    let y = b.mul(v, sums, "v_own")?;
    b.reshape(y, [cx.model.hparams.n_embd.into(), b.n_tokens()], "v_own")
}
