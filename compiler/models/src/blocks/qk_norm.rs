//! Query and key heads, normalised and rotated in the description's order.

use tpc_ir::Value;
use tpc_ir::op::{Norm, NormKind};

use super::builder::Builder;
use super::context::LayerContext;
use super::{norm, rope};
use crate::description::{Presence, QkNorm, QkNormOrder};
use crate::error::ArchError;
use crate::hparams::RopeUse;
use crate::size::Size;
use crate::source::TensorRole;

/// Epsilon of layer norms of heads, which no key gives.
const LAYER_EPS: f32 = 1e-5;

pub(super) const QUERIES: &str = "attn_q_norm";

pub(super) struct Heads<'a> {
    /// Norm tensor of these heads.
    pub(super) norm: &'a str,
    /// Norm tensor of the other heads.
    pub(super) other_norm: &'a str,
    pub(super) width: Size,
    pub(super) other_width: Size,
    pub(super) count: u64,
    pub(super) name: &'a str,
}

/// Returns the normalised, rotated heads, `[head size, heads, n_tokens]`.
pub(super) fn heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    which: &Heads<'_>,
) -> Result<Value, ArchError> {
    let dims = [cx.layer.heads.dk.into(), which.count.into(), b.n_tokens()];
    let x = normalise_all(b, cx, x, which)?;
    let x = b.reshape(x, dims, which.name)?;
    match cx.model.arch.attention.qk_norm_order {
        QkNormOrder::NormFirst => {
            let x = per_head(b, cx, x, which)?;
            rope::rotate(b, cx, x, which.name)
        }
        QkNormOrder::RotationFirst => {
            let x = rope::rotate(b, cx, x, which.name)?;
            per_head(b, cx, x, which)
        }
    }
}

fn normalise_all(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    which: &Heads<'_>,
) -> Result<Value, ArchError> {
    let bias = match cx.model.arch.attention.qk_norm {
        QkNorm::None
        | QkNorm::Head
        | QkNorm::OptionalHead
        | QkNorm::OptionalHeads
        | QkNorm::QueriesByHead
        | QkNorm::Halves
        | QkNorm::OptionalHeadsInRow
        | QkNorm::LayerHeads
        | QkNorm::Unweighted
        | QkNorm::UnweightedUnlessExperts(_) => return Ok(x),
        QkNorm::All => Presence::Absent,
        QkNorm::OptionalAll => {
            let queries = &[cx.layer.q_width];
            if !norm::exists(b, &cx.model, QUERIES, queries, Presence::Optional)? {
                return Ok(x);
            }
            Presence::Optional
        }
    };
    let normed = format!("{}_normed", which.name);
    norm::affine(b, &cx.model, which.norm, which.width, bias, x, &normed)
}

fn per_head(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    which: &Heads<'_>,
) -> Result<Value, ArchError> {
    let dk = Size {
        n: cx.layer.heads.dk,
        from: "attention.key_length",
    };
    let count = |n| Size {
        n,
        from: "the number of heads",
    };
    let normed = format!("{}_normed", which.name);
    let (sizes, others) = match cx.model.arch.attention.qk_norm {
        QkNorm::None | QkNorm::All | QkNorm::OptionalAll => return Ok(x),
        QkNorm::Head => return norm::with_weight(b, &cx.model, which.norm, &[dk], x, &normed),
        QkNorm::Halves => return by_halves(b, cx, x, which, dk),
        QkNorm::LayerHeads => return by_layer_norm(b, x, which, [dk, count(which.count)]),
        QkNorm::Unweighted => return norm::without_weight(b, &cx.model, x, &normed),
        QkNorm::UnweightedUnlessExperts(n) => {
            let experts = cx.model.hparams.ffn.experts.map(|e| e.count);
            return if cx.layer.rope == RopeUse::Unrotated || experts == Some(n) {
                Ok(x)
            } else {
                norm::without_weight(b, &cx.model, x, &normed)
            };
        }
        QkNorm::QueriesByHead if which.norm == QUERIES => {
            let one = Size::new(1, "one number");
            let sizes = [one, count(which.count)];
            return norm::with_weight(b, &cx.model, which.norm, &sizes, x, &normed);
        }
        QkNorm::QueriesByHead => return norm::without_weight(b, &cx.model, x, &normed),
        QkNorm::OptionalHead => (vec![dk], vec![dk]),
        QkNorm::OptionalHeadsInRow => (vec![which.width], vec![which.other_width]),
        QkNorm::OptionalHeads => (
            vec![dk, count(which.count)],
            vec![dk, count(which.other_width.n / dk.n)],
        ),
    };
    let optional = Presence::Optional;
    let here = norm::exists(b, &cx.model, which.norm, &sizes, optional)?;
    let there = norm::exists(b, &cx.model, which.other_norm, &others, optional)?;
    match (here, there) {
        (true, true) if cx.model.arch.attention.qk_norm == QkNorm::OptionalHeadsInRow => {
            let y = norm::without_weight(b, &cx.model, x, "norm")?;
            let weight = b.tensor_name(which.norm, "weight");
            let weight = b.require(&weight, &sizes, TensorRole::NormWeight)?;
            let dims = [dk.n.into(), which.count.into()];
            let weight = b.reshape(weight, dims, which.norm)?;
            b.mul(y, weight, &normed)
        }
        (true, true) => norm::with_weight(b, &cx.model, which.norm, &sizes, x, &normed),
        (false, false) => Ok(x),
        (true, false) => Err(missing_partner(b, which.norm, which.other_norm)),
        (false, true) => Err(missing_partner(b, which.other_norm, which.norm)),
    }
}

/// Normalises each head by a layer norm with weights and optional biases of these sizes.
fn by_layer_norm(
    b: &mut Builder<'_>,
    x: Value,
    which: &Heads<'_>,
    sizes: [Size; 2],
) -> Result<Value, ArchError> {
    let norm = Norm {
        kind: NormKind::Layer,
        eps: LAYER_EPS,
    };
    let y = b.push(norm, vec![x], "norm")?;
    let weight = b.tensor_name(which.norm, "weight");
    let weight = b.require(&weight, &sizes, TensorRole::NormWeight)?;
    let y = b.mul(y, weight, which.name)?;
    let bias = b.tensor_name(which.norm, "bias");
    match b.optional(&bias, &sizes, TensorRole::Bias, Presence::Optional)? {
        Some(bias) => b.add(y, bias, which.name),
        None => Ok(y),
    }
}

/// Normalises both halves of each head.
fn by_halves(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    which: &Heads<'_>,
    dk: Size,
) -> Result<Value, ArchError> {
    let halves = [
        (dk.n / 2).into(),
        2.into(),
        which.count.into(),
        b.n_tokens(),
    ];
    let heads = [dk.n.into(), which.count.into(), b.n_tokens()];
    let x = b.reshape(x, halves, which.name)?;
    let y = norm::without_weight(b, &cx.model, x, "norm")?;
    let y = b.reshape(y, heads, which.name)?;
    let weight = b.tensor_name(which.norm, "weight");
    let weight = b.require(&weight, &[dk], TensorRole::NormWeight)?;
    b.mul(y, weight, which.name)
}

/// Returns the error for a file with only one of two norms.
fn missing_partner(b: &Builder<'_>, present: &str, missing: &str) -> ArchError {
    ArchError::MissingPartner {
        present: b.tensor_name(present, "weight"),
        missing: b.tensor_name(missing, "weight"),
    }
}
