//! Scores of single cells, from query heads, keys and head weights.

use tpc_ir::op::{Fill, InputKind, LightningIndexer, Norm, NormKind, Rope};
use tpc_ir::{Dim, Value};

use super::Input;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::kv_cache::{self, CacheKind};
use crate::blocks::rotation::Rotation;
use crate::blocks::{log_scale, norm, rope};
use crate::description::{IndexerPart, IndexerTensors, Presence, RopeFactors, RopeLayers};
use crate::error::ArchError;
use crate::hparams::{IndexerHParams, RopeUse};
use crate::size::Size;
use crate::source::TensorRole;

/// Returns all cells' scores, `[n_kv, n_tokens]`; `None` without the latent vector of queries.
pub(super) fn scores(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    input: Input,
) -> Result<Option<Value>, ArchError> {
    let Some(q) = queries(b, cx, hp, input)? else {
        return Ok(None);
    };
    let k = projected_keys(b, cx, hp, input.x)?;
    let k = normed_keys(b, cx, hp, k)?;
    let positions = positions(b, cx);
    let k = key_heads(b, cx, hp, k, positions)?;
    score_cells(b, cx, hp, input.x, [q, k]).map(Some)
}

/// Returns the rotated query heads, `[dim, heads, n_tokens]`.
pub(super) fn queries(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    input: Input,
) -> Result<Option<Value>, ArchError> {
    const NAME: &str = "indexer_q";
    let model = cx.model.hparams;
    let dims = [hp.dim.n.into(), hp.heads.n.into(), b.n_tokens()];
    let q = match (hp.form.tensors, input.queries) {
        (IndexerTensors::OfLatent, None) => return Ok(None),
        (IndexerTensors::OfLatent, Some(latent)) => {
            let rank = b.dims(latent)[0].as_const();
            let rank = rank.map_or(model.embd(), |n| Size::new(n, "attention.q_lora_rank"));
            let sizes = [rank, hp.width];
            let q = b.project("indexer.attn_q_b", latent, sizes, NAME)?;
            b.reshape(q, dims, NAME)?
        }
        (IndexerTensors::OfNormedInput, _) => {
            let eps = hp.eps.unwrap_or(model.norm.eps);
            let x = layer_norm(b, eps, "indexer.q_norm", model.embd(), input.x)?;
            let q = b.project("indexer.attn_q_b", x, [model.embd(), hp.width], NAME)?;
            let q = b.reshape(q, dims, NAME)?;
            log_scale::apply(b, cx, "indexer.ssmax", hp.heads.n, q)?
        }
        (IndexerTensors::OfInput, _) => {
            let sizes = [model.embd(), hp.width];
            let q = b.project("indexer.q_proj", input.x, sizes, NAME)?;
            let q = b.reshape(q, dims, NAME)?;
            norm::with_weight(b, &cx.model, "indexer.q_norm", &[hp.dim], q, NAME)?
        }
    };
    let positions = positions(b, cx);
    rotate(b, cx, hp, [q, positions], NAME).map(Some)
}

/// Returns keys before their norm, `[dim, n_tokens]`.
pub(super) fn projected_keys(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let tensor = match hp.form.tensors {
        IndexerTensors::OfLatent | IndexerTensors::OfNormedInput => "indexer.attn_k",
        IndexerTensors::OfInput => "indexer.k_proj",
    };
    let sizes = [cx.model.hparams.embd(), hp.dim];
    b.project(tensor, x, sizes, "indexer_k")
}

/// Returns the normalised keys, `[dim, n_tokens]`.
pub(super) fn normed_keys(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    k: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "indexer_k";
    match hp.form.tensors {
        IndexerTensors::OfInput => {
            norm::with_weight(b, &cx.model, "indexer.k_norm", &[hp.dim], k, NAME)
        }
        IndexerTensors::OfLatent | IndexerTensors::OfNormedInput => {
            let eps = hp.eps.unwrap_or(cx.model.hparams.norm.eps);
            layer_norm(b, eps, "indexer.k_norm", hp.dim, k)
        }
    }
}

fn layer_norm(
    b: &mut Builder<'_>,
    eps: f32,
    tensor: &str,
    size: Size,
    x: Value,
) -> Result<Value, ArchError> {
    let norm = Norm {
        kind: NormKind::Layer,
        eps,
    };
    let y = b.push(norm, vec![x], tensor)?;
    let weight = b.tensor_name(tensor, "weight");
    let weight = b.require(&weight, &[size], TensorRole::NormWeight)?;
    let y = b.mul(y, weight, tensor)?;
    b.add_bias(tensor, y, size, Presence::Required, tensor)
}

/// Returns the rotated keys, `[dim, 1, n_tokens]`.
pub(super) fn key_heads(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    k: Value,
    positions: Value,
) -> Result<Value, ArchError> {
    let dims = [hp.dim.n.into(), Dim::ONE, b.n_tokens()];
    let k = b.reshape(k, dims, "indexer_k")?;
    rotate(b, cx, hp, [k, positions], "indexer_k")
}

/// Stores keys and scores all cached keys, `[n_kv, n_tokens]`.
pub(super) fn score_cells(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    x: Value,
    [q, k]: [Value; 2],
) -> Result<Value, ArchError> {
    const NAME: &str = "indexer_weights";
    let rotation = Rotation::for_keys(cx.model.options.cache_type_k, hp.dim.n);
    let [q, k] = match rotation {
        Some(rotation) => [
            rotation.apply(b, q, "indexer_q_rot")?,
            rotation.apply(b, k, "indexer_k_rot")?,
        ],
        None => [q, k],
    };
    let k = kv_cache::store(b, cx, CacheKind::IndexerKeys, k)?;
    let k = b.swap_heads(k, "indexer_k")?;
    let weights = match hp.form.tensors {
        IndexerTensors::OfLatent | IndexerTensors::OfNormedInput => {
            let sizes = [cx.model.hparams.embd(), hp.heads];
            let weights = b.project("indexer.proj", x, sizes, NAME)?;
            b.scale(weights, 1.0 / (hp.width.n as f32).sqrt(), NAME)?
        }
        IndexerTensors::OfInput => {
            let first = b.slice(q, 0, 0, Dim::ONE, NAME)?;
            let first = b.reshape(first, [hp.heads.n.into(), b.n_tokens()], NAME)?;
            b.push(Fill { value: 1.0 }, vec![first], NAME)?
        }
    };
    b.push(LightningIndexer, vec![q, k, weights], "indexer_score")
}

fn positions(b: &mut Builder<'_>, cx: &LayerContext<'_>) -> Value {
    let rope = cx.model.hparams.positions.rope.as_ref();
    let sections = rope.and_then(|[full, _]| full.mode.sections());
    b.input(match sections {
        None => InputKind::Positions,
        Some(_) => InputKind::PositionsMrope,
    })
}

/// Rotates queries or keys with the indexer's pairing of elements.
fn rotate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    [x, positions]: [Value; 2],
    name: &str,
) -> Result<Value, ArchError> {
    let Some([full, _]) = &cx.model.hparams.positions.rope else {
        return Ok(x);
    };
    let form = cx.model.arch.attention.rope.as_ref();
    let layers = form.map(|form| form.layers);
    if layers == Some(RopeLayers::ListedOrPlain) && cx.layer.rope == RopeUse::Unrotated {
        return Ok(x);
    }
    let mode = match full.mode.sections() {
        // If tokens have several positions, the indexer pairs elements as the model does.
        Some(_) => full.mode,
        None => hp.form.mode,
    };
    let rope = Rope {
        mode,
        ..full.clone()
    };
    match hp.form.rotated {
        IndexerPart::None => Ok(x),
        IndexerPart::Last => rope::rotate_last(b, &rope, x, vec![positions], name),
        IndexerPart::First => {
            let mut operands = vec![x, positions];
            if let Some(form) = form.filter(|form| form.factors == RopeFactors::Required) {
                operands.extend(rope::factors(b, &cx.model, form, rope.n_dims)?);
            }
            b.push(rope, operands, name)
        }
    }
}

/// Requests the indexer tensors of files whose graph does not read them, because all cells are selected.
pub(super) fn find_tensors(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
) -> Result<(), ArchError> {
    let embd = cx.model.hparams.embd();
    let (matrix, norm) = (TensorRole::Matrix, TensorRole::NormWeight);
    let tensors = [
        ("indexer.q_proj", vec![embd, hp.width], matrix),
        ("indexer.k_proj", vec![embd, hp.dim], matrix),
        ("indexer.q_norm", vec![hp.dim], norm),
        ("indexer.k_norm", vec![hp.dim], norm),
    ];
    for (tensor, sizes, role) in tensors {
        let name = b.tensor_name(tensor, "weight");
        b.find(&name, &sizes, role, Presence::Required)?;
    }
    Ok(())
}
