//! Scores of single cells, from query heads, keys and head weights.

use tpc_ir::op::{Fill, InputKind, LightningIndexer, Norm, NormKind, Rope};
use tpc_ir::{Dim, Value};

use super::Input;
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::kv_cache::{self, CacheKind};
use crate::blocks::rotation::Rotation;
use crate::blocks::{norm, rope};
use crate::description::{IndexerPart, IndexerTensors, Presence};
use crate::error::ArchError;
use crate::hparams::IndexerHParams;
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
        IndexerTensors::OfLatent => "indexer.attn_k",
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
        IndexerTensors::OfLatent => {
            let norm = Norm {
                kind: NormKind::Layer,
                eps: hp.eps.unwrap_or(cx.model.hparams.norm.eps),
            };
            let k = b.push(norm, vec![k], NAME)?;
            let weight = b.tensor_name("indexer.k_norm", "weight");
            let weight = b.require(&weight, &[hp.dim], TensorRole::NormWeight)?;
            let k = b.mul(k, weight, NAME)?;
            b.add_bias("indexer.k_norm", k, hp.dim, Presence::Required, NAME)
        }
    }
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
        IndexerTensors::OfLatent => {
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
        IndexerPart::First => b.push(rope, vec![x, positions], name),
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
