//! RWKV 6's time mix: five mixtures of each token and the previous one, which depend on both, then a memory per head
//! whose elements decay at rates that depend on the token.

use tpc_ir::op::{Binary, BinaryKind, Repeat, UnaryKind};
use tpc_ir::{DType, Dim, TensorType, Value};

use super::token_shift;
use super::wkv::{self, Extra, WkvInputs};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::description::{Presence, Rwkv6Form};
use crate::error::ArchError;
use crate::hparams::{MIXES, Rwkv6HParams};
use crate::size::Size;
use crate::source::{Form, TensorRole};

pub(super) fn rwkv6(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv6HParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let back = token_shift::step_back(b, cx, "cache_r", x)?;
    let [xw, xk, xv, xr, xg] = mixtures(b, cx, hp, [x, back])?;
    let bias = match hp.form {
        Rwkv6Form::Bonus => Presence::Absent,
        Rwkv6Form::Gated => Presence::Optional,
    };
    let role = TensorRole::Matrix;
    let wide = [embd, embd];
    let r = b.linear("time_mix_receptance", xr, wide, bias, role, "r")?;
    let k = b.linear("time_mix_key", xk, [embd, hp.kv_width], bias, role, "k")?;
    let v = b.linear("time_mix_value", xv, [embd, hp.kv_width], bias, role, "v")?;
    let g = b.project("time_mix_gate", xg, wide, "g")?;
    let gate = match hp.form {
        Rwkv6Form::Bonus => UnaryKind::Silu,
        Rwkv6Form::Gated => UnaryKind::Sigmoid,
    };
    let g = b.unary(&[gate], g, "g_act")?;
    let w = decay(b, cx, hp, xw)?;
    let (mut k, v) = (for_heads(b, hp, k, "k")?, for_heads(b, hp, v, "v")?);
    let y = match hp.form {
        Rwkv6Form::Bonus => {
            let bonus = b.tensor_name("time_mix_first", "weight");
            let sizes = [hp.heads.size, hp.heads.count];
            let bonus = b.require(&bonus, &sizes, TensorRole::Scale)?;
            let inputs = WkvInputs { r, w, k, v };
            let y = wkv::remember(b, cx, hp.heads, inputs, Extra::Bonus(bonus))?;
            wkv::normed(b, cx, hp.heads, Presence::Required, y)?
        }
        Rwkv6Form::Gated => {
            let kept = b.mul(k, w, "k_kept")?;
            let kind = BinaryKind::Sub;
            k = b.push(Binary { kind }, vec![k, kept], "k")?;
            let inputs = WkvInputs { r, w, k, v };
            let y = wkv::remember(b, cx, hp.heads, inputs, Extra::None)?;
            let scale = 1.0 / (hp.heads.size.n as f32).sqrt();
            b.scale(y, scale, "wkv_scaled")?
        }
    };
    let y = b.mul(y, g, "wkv_gated")?;
    b.project("time_mix_output", y, wide, "time_mix_out")
}

/// Returns the mixtures for decay, keys, values, receptance and gate.
fn mixtures(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv6HParams,
    [x, back]: [Value; 2],
) -> Result<[Value; 5], ArchError> {
    const SEPARATE: [&str; 5] = [
        "time_mix_lerp_w",
        "time_mix_lerp_k",
        "time_mix_lerp_v",
        "time_mix_lerp_r",
        "time_mix_lerp_g",
    ];
    let embd = cx.model.hparams.embd();
    let both = token_shift::mixed(b, cx, "time_mix_lerp_x", [x, back], "xxx")?;
    let low = b.project("time_mix_w1", both, [embd, hp.mixes], "xxx")?;
    let low = b.unary(&[UnaryKind::Tanh], low, "xxx")?;
    let low = b.reshape(low, [hp.mix.n.into(), MIXES.into(), b.n_tokens()], "xxx")?;
    let low = b.swap_heads(low, "xxx")?;
    let up = b.tensor_name("time_mix_w2", "weight");
    let mixes = Size::new(MIXES, "the number of mixtures");
    let up = b.require(&up, &[hp.mix, embd, mixes], TensorRole::Matrix)?;
    let shares = b.mul_mat(up, low, "xxx")?;
    let fused = b.tensor_name(token_shift::FUSED, "weight");
    let fused = match b.offers(&fused, Form::Usual) {
        true => Some(token_shift::shares(b, cx, MIXES)?),
        false => None,
    };
    let mut out = [x; 5];
    for ((i, out), tensor) in (0..).zip(&mut out).zip(SEPARATE) {
        let own = b.slice(shares, 2, i, Dim::ONE, "x_share")?;
        let own = b.reshape(own, [embd.n.into(), b.n_tokens()], "x_share")?;
        let base = match fused {
            Some(fused) => b.slice(fused, 1, i, Dim::ONE, "x_base")?,
            None => {
                let name = b.tensor_name(tensor, "weight");
                b.require(&name, &[embd], TensorRole::Scale)?
            }
        };
        let share = b.add(own, base, "x_share")?;
        let step = b.mul(share, back, "x_step")?;
        *out = b.add(step, x, "x_mixed")?;
    }
    Ok(out)
}

/// Returns the factors of decay, `[n_embd, n_tokens]`.
fn decay(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &Rwkv6HParams,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let low = b.project("time_mix_decay_w1", x, [embd, hp.decay], "w")?;
    let low = b.unary(&[UnaryKind::Tanh], low, "w")?;
    let w = b.project("time_mix_decay_w2", low, [hp.decay, embd], "w")?;
    let base = b.tensor_name("time_mix_decay", "weight");
    let base = b.require(&base, &[embd], TensorRole::Bias)?;
    let w = b.add(w, base, "w")?;
    b.unary(&[UnaryKind::Exp, UnaryKind::Neg, UnaryKind::Exp], w, "w")
}

/// Returns keys or values for all heads, `[n_embd, n_tokens]`. Consecutive heads share theirs.
fn for_heads(
    b: &mut Builder<'_>,
    hp: &Rwkv6HParams,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let times = hp.heads.count.n / hp.kv_heads;
    if times == 1 {
        return Ok(x);
    }
    let (size, shared): (Dim, Dim) = (hp.heads.size.n.into(), hp.kv_heads.into());
    let x = b.reshape(
        x,
        [size.clone(), Dim::ONE, shared.clone(), b.n_tokens()],
        name,
    )?;
    let dims = TensorType::new(DType::F32, [size, times.into(), shared, b.n_tokens()]).dims;
    let x = b.push(Repeat { dims }, vec![x], name)?;
    let width = hp.heads.size.n * hp.heads.count.n;
    b.reshape(x, [width.into(), b.n_tokens()], name)
}
