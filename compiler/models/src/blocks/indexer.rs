//! The indexer of sparse attention: it scores the cells of the cache for each token, and hides all but the best.

use tpc_ir::op::{Concat, InputKind, LightningIndexer, Norm, NormKind, Rope, TopMask};
use tpc_ir::{Dim, Value};

use super::attention::normal_mask;
use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::{self, CacheKind};
use super::rotation::Rotation;
use crate::description::{IndexerPart, Presence};
use crate::error::ArchError;
use crate::hparams::{IndexerHParams, Reach};
use crate::source::TensorRole;

/// The tensors of an indexer within a layer.
const TENSORS: [&str; 5] = [
    "indexer.attn_q_b.weight",
    "indexer.attn_k.weight",
    "indexer.k_norm.weight",
    "indexer.k_norm.bias",
    "indexer.proj.weight",
];

/// The mask of attention, `[n_kv, n_tokens]`, given the layer's input `x` and the latent vector of queries.
pub(super) fn mask(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    queries: Option<Value>,
) -> Result<Option<Value>, ArchError> {
    let hp = cx.model.hparams.indexer.as_ref();
    let (Some(hp), Some(queries), Reach::Full) = (hp, queries, cx.layer.reach) else {
        return Ok(None);
    };
    let is_draft = cx.layer.index as usize >= cx.model.hparams.layers.len();
    if is_draft || !hp.is_in(cx.layer.index) {
        // Files have indexers there that are not used.
        for tensor in TENSORS {
            let name = b.bare_name(tensor);
            b.ignore(&name);
        }
        return Ok(b.selection().filter(|_| !is_draft));
    }
    let scores = scores(b, cx, hp, x, queries)?;
    let visible = normal_mask(b, cx);
    let scores = b.add(scores, visible, "indexer_score")?;
    let selected = b.push(TopMask { k: hp.top_k }, vec![scores], "indexer_top_k")?;
    let mask = b.add(selected, visible, "indexer_mask")?;
    b.note_selection(mask);
    Ok(Some(mask))
}

/// The scores of all cells, `[n_kv, n_tokens]`.
fn scores(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    x: Value,
    queries: Value,
) -> Result<Value, ArchError> {
    let model = cx.model.hparams;
    let (absent, role) = (Presence::Never, TensorRole::Matrix);
    let rank = model.latent.as_ref().and_then(|[full, _]| full.q_rank);
    let rank = rank.unwrap_or_else(|| model.embd());
    let (heads, dim): (Dim, Dim) = (hp.heads.n.into(), hp.dim.n.into());
    let sizes = [rank, hp.width];
    let q = b.linear(
        "indexer.attn_q_b",
        queries,
        sizes,
        absent,
        role,
        "indexer_q",
    )?;
    let q = b.reshape(q, [dim.clone(), heads, b.n_tokens()], "indexer_q")?;
    let q = rotate(b, cx, hp, q, "indexer_q")?;
    let sizes = [model.embd(), hp.dim];
    let k = b.linear("indexer.attn_k", x, sizes, absent, role, "indexer_k")?;
    let norm = Norm {
        kind: NormKind::Layer,
        eps: hp.form.eps.unwrap_or(model.eps),
    };
    let k = b.push(norm, vec![k], "indexer_k")?;
    let weight = b.tensor_name("indexer.k_norm", "weight");
    let weight = b.required(&weight, &[hp.dim], TensorRole::NormWeight)?;
    let k = b.mul(k, weight, "indexer_k")?;
    let k = b.biased("indexer.k_norm", k, hp.dim, Presence::Required, "indexer_k")?;
    let k = b.reshape(k, [dim, Dim::ONE, b.n_tokens()], "indexer_k")?;
    let k = rotate(b, cx, hp, k, "indexer_k")?;
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
    let sizes = [model.embd(), hp.heads];
    let weights = b.linear("indexer.proj", x, sizes, absent, role, "indexer_weights")?;
    let scale = 1.0 / (hp.width.n as f32).sqrt();
    let weights = b.scale(weights, scale, "indexer_weights")?;
    b.push(LightningIndexer, vec![q, k, weights], "indexer_score")
}

/// The heads of queries or keys, rotated as the indexer pairs elements.
fn rotate(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    x: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let Some([full, _]) = &cx.model.hparams.rope else {
        return Ok(x);
    };
    let rope = Rope {
        mode: hp.form.mode,
        ..full.clone()
    };
    let positions = b.input(InputKind::Positions);
    let plain = hp.dim.n - rope.n_dims;
    match hp.form.rotated {
        IndexerPart::Last if plain > 0 => {
            let first = b.slice(x, 0, 0, plain.into(), name)?;
            let last = b.slice(x, 0, plain, rope.n_dims.into(), name)?;
            let last = b.push(rope, vec![last, positions], name)?;
            b.push(Concat { axis: 0 }, vec![first, last], name)
        }
        IndexerPart::First | IndexerPart::Last => b.push(rope, vec![x, positions], name),
    }
}
