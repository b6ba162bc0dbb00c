//! The gated delta rule: a memory per head that decays, is corrected, and is read.

use tpc_ir::op::{GatedDeltaNet, Norm, NormKind, Unary, UnaryKind};
use tpc_ir::{Dim, Value};

use super::state;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;

pub(super) struct RuleSizes {
    pub(super) key_dim: u64,
    pub(super) value_dim: u64,
    pub(super) heads: u64,
    /// Number of decays per head: 1 or `key_dim`.
    pub(super) decays: u64,
}

#[derive(Clone, Copy)]
pub(super) struct RuleOperands {
    /// Queries, `[key_dim, heads or fewer, n_seq_tokens, n_seqs]`.
    pub(super) q: Value,
    /// Keys, in the shape of `q`.
    pub(super) k: Value,
    /// Values, `[value_dim · heads, n_tokens]`.
    pub(super) v: Value,
    /// Logarithms of decays, `[decays · heads, n_tokens]`.
    pub(super) decay: Value,
    /// Logits of corrections, `[heads, n_tokens]`.
    pub(super) correction: Value,
}

/// Normalises heads to unit length, `[dim, heads, n_tokens]`. The epsilon under the root may differ from the norms'
/// epsilon.
pub(super) fn unit_heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    [dim, heads]: [u64; 2],
    eps: Option<f32>,
    name: &str,
) -> Result<Value, ArchError> {
    let x = b.reshape(x, [dim.into(), heads.into(), b.n_tokens()], name)?;
    // x / √(mean + ε/d) / √d is x / √(sum + ε).
    let dim = dim as f32;
    let unit = Norm {
        kind: NormKind::Rms,
        eps: eps.unwrap_or(cx.model.hparams.norm.eps) / dim,
    };
    let x = b.push(unit, vec![x], name)?;
    b.scale(x, 1.0 / dim.sqrt(), name)
}

/// Returns the outputs of the memories, `[value_dim, heads, n_tokens]`.
pub(super) fn remember(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    sizes: &RuleSizes,
    operands: RuleOperands,
) -> Result<Value, ArchError> {
    let [n_t, n_s] = state::tokens();
    let (dk, dv, heads): (Dim, Dim, Dim) = (
        sizes.key_dim.into(),
        sizes.value_dim.into(),
        sizes.heads.into(),
    );
    let by_head = |n: Dim| [n, heads.clone(), n_t.clone(), n_s.clone()];
    let v = b.reshape(operands.v, by_head(dv.clone()), "v_conv")?;
    let kind = UnaryKind::Sigmoid;
    let beta = b.push(Unary { kind }, vec![operands.correction], "beta_sigmoid")?;
    let decay = b.reshape(operands.decay, by_head(sizes.decays.into()), "gate")?;
    let beta = b.reshape(beta, by_head(Dim::ONE), "beta_sigmoid")?;
    let size = sizes.key_dim * sizes.value_dim * sizes.heads;
    let (kept, before) = state::read(b, cx, "cache_s", size)?;
    let dims = [dk, dv.clone(), heads.clone(), n_s.clone()];
    let before = b.reshape(before, dims, "state_predelta")?;
    let operands = vec![operands.q, operands.k, v, decay, beta, before];
    let [y, after] = b.push_pair(GatedDeltaNet, operands, ["attn_output", "new_state"])?;
    kept.write(b, after)?;
    b.reshape(y, [dv, heads, b.n_tokens()], "attn_output")
}
