//! RWKV's recurrence with its state, and the norm of heads.

use tpc_ir::op::{Norm, NormKind, Wkv};
use tpc_ir::{Dim, Value};

use super::state;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::description::Presence;
use crate::error::ArchError;
use crate::hparams::WkvHeads;
use crate::source::TensorRole;

/// Epsilon of the norm of heads.
const EPSILON: f32 = 64e-5;

const NORM: &str = "time_mix_ln";

/// Operands, `[n_embd, n_tokens]` each.
#[derive(Clone, Copy)]
pub(super) struct WkvInputs {
    pub(super) r: Value,
    /// Factors of decay.
    pub(super) w: Value,
    pub(super) k: Value,
    pub(super) v: Value,
}

/// The operands after the state.
#[derive(Clone, Copy)]
pub(super) enum Extra {
    None,
    /// `[head size, heads]`
    Bonus(Value),
    /// `[n_embd, n_tokens]` each.
    Correction([Value; 2]),
}

/// Returns the outputs of all heads, `[n_embd, n_tokens]`.
pub(super) fn remember(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    heads: WkvHeads,
    inputs: WkvInputs,
    extra: Extra,
) -> Result<Value, ArchError> {
    let [n_t, n_s] = state::tokens();
    let (size, count): (Dim, Dim) = (heads.size.n.into(), heads.count.n.into());
    let by_head = [size.clone(), count.clone(), n_t, n_s.clone()];
    let row = |b: &mut Builder<'_>, x, name| b.reshape(x, by_head.clone(), name);
    let mut operands = vec![
        row(b, inputs.r, "r")?,
        row(b, inputs.w, "w")?,
        row(b, inputs.k, "k")?,
        row(b, inputs.v, "v")?,
    ];
    let elements = heads.size.n * cx.model.hparams.n_embd;
    let (kept, before) = state::read(b, cx, "cache_s", elements)?;
    let dims = [size.clone(), size, count, n_s];
    operands.push(b.reshape(before, dims, "wkv_states")?);
    match extra {
        Extra::None => {}
        Extra::Bonus(u) => operands.push(u),
        Extra::Correction([a, back]) => {
            operands.extend([row(b, a, "wkv_a")?, row(b, back, "wkv_b")?]);
        }
    }
    let [y, after] = b.push_pair(Wkv, operands, ["wkv_output", "wkv_states_updated"])?;
    kept.write(b, after)?;
    b.reshape(
        y,
        [cx.model.hparams.n_embd.into(), b.n_tokens()],
        "wkv_output",
    )
}

/// Returns `x: [n_embd, n_tokens]` as heads, `[head size, heads, n_tokens]`.
pub(super) fn by_head(
    b: &mut Builder<'_>,
    heads: WkvHeads,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let dims = [heads.size.n.into(), heads.count.n.into(), b.n_tokens()];
    b.reshape(x, dims, name)
}

/// Normalises each head of `x: [n_embd, n_tokens]`, if the file has the norm.
pub(super) fn normed(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    heads: WkvHeads,
    presence: Presence,
    x: Value,
) -> Result<Value, ArchError> {
    let embd = cx.model.hparams.embd();
    let weight = b.tensor_name(NORM, "weight");
    let weight = b.optional(&weight, &[embd], TensorRole::NormWeight, presence)?;
    let Some(weight) = weight else {
        return Ok(x);
    };
    let norm = Norm {
        kind: NormKind::Layer,
        eps: EPSILON,
    };
    let y = by_head(b, heads, x, "wkv_heads")?;
    let y = b.push(norm, vec![y], "wkv_norm")?;
    let y = b.reshape(y, [embd.n.into(), b.n_tokens()], "wkv_norm")?;
    let y = b.mul(y, weight, "wkv_normed")?;
    b.add_bias(NORM, y, embd, Presence::Required, "wkv_normed")
}
