//! The indexer of sparse attention: scores the cache cells for each token, and masks all but the best.

mod cells;
mod pooled;

use tpc_ir::Value;
use tpc_ir::op::{BlockInput, BlockPart, GetRows, InputKind, Permute, TopMask, UnaryKind};

use super::builder::Builder;
use super::context::LayerContext;
use super::mask::visible_cells;
use crate::error::ArchError;
use crate::hparams::{IndexerHParams, Reach};

const TENSORS: [&str; 14] = [
    "indexer.attn_q_b.weight",
    "indexer.attn_k.weight",
    "indexer.k_norm.weight",
    "indexer.k_norm.bias",
    "indexer.proj.weight",
    "indexer.q_proj.weight",
    "indexer.k_proj.weight",
    "indexer.q_norm.weight",
    "indexer.q_norm.bias",
    "indexer.ssmax.weight",
    "indexer.ssmax.bias",
    "indexer_compressor_gate.weight",
    "indexer_compressor_ape.weight",
    "indexer_compressor_norm.weight",
];

/// Returns the attention mask, `[n_kv, n_tokens]`; `None` if tokens attend to every visible cell. `x` is the layer's
/// input, `queries` the optional latent vector of queries.
pub(super) fn mask(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    x: Value,
    queries: Option<Value>,
) -> Result<Option<Value>, ArchError> {
    let hp = cx.model.hparams.attention.indexer.as_ref();
    let (Some(hp), Reach::Full) = (hp, cx.layer.reach) else {
        return Ok(None);
    };
    if let Some(limit) = hp.dense_up_to {
        let found = cx.model.options.ctx_size;
        if found > limit {
            let arch = cx.model.arch.name;
            return Err(ArchError::HeadsSelect { arch, found, limit });
        }
        if hp.is_in(cx.layer.index) {
            cells::find_tensors(b, cx, hp)?;
        }
        return Ok(None);
    }
    let is_draft = cx.layer.index as usize >= cx.model.hparams.layers.len();
    let all = hp.block(cx.layer.index) == Some(0);
    if is_draft || all || !hp.is_in(cx.layer.index) {
        ignore_tensors(b);
        return Ok(b.selection().filter(|_| !is_draft && !all));
    }
    let input = Input { x, queries };
    let mask = match hp.block(cx.layer.index) {
        None => {
            let Some(scores) = cells::scores(b, cx, hp, input)? else {
                return Ok(None);
            };
            let visible = visible_cells(b, cx);
            best(b, hp.top_k, scores, visible, "indexer_mask")?
        }
        Some(tokens) => {
            let Some(scores) = pooled::scores(b, cx, hp, tokens, input)? else {
                return Ok(None);
            };
            of_blocks(b, hp, tokens, scores)?
        }
    };
    b.note_selection(mask);
    Ok(Some(mask))
}

/// Ignores the indexer's tensors, which files have even in layers without an indexer.
fn ignore_tensors(b: &mut Builder<'_>) {
    for tensor in TENSORS {
        let name = b.bare_name(tensor);
        b.ignore(&name);
    }
}

#[derive(Clone, Copy)]
pub(super) struct Input {
    pub(super) x: Value,
    pub(super) queries: Option<Value>,
}

/// Returns the mask of the best blocks, `[n_kv, n_tokens]`. A block has `tokens` tokens and one row, in the cell of its
/// last token. `keys` is `[dim, n_tokens]`; `starts: [n_tokens]` has the positions of the blocks' first tokens.
pub(super) fn mask_of_rows(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    tokens: u64,
    input: Input,
    [keys, starts]: [Value; 2],
) -> Result<Value, ArchError> {
    let seen = block_input(b, BlockPart::Seen, tokens);
    let Some(q) = cells::queries(b, cx, hp, input)? else {
        return Ok(seen);
    };
    let k = cells::key_heads(b, cx, hp, keys, starts)?;
    let scores = cells::score_cells(b, cx, hp, input.x, [q, k])?;
    best(b, hp.top_k, scores, seen, "indexer_mask")
}

/// Returns the mask of the `k` best cells that the mask `seen` shows.
fn best(
    b: &mut Builder<'_>,
    k: u64,
    scores: Value,
    seen: Value,
    name: &str,
) -> Result<Value, ArchError> {
    let scores = b.add(scores, seen, "indexer_score")?;
    let selected = b.push(TopMask { k }, vec![scores], "indexer_top_k")?;
    b.add(selected, seen, name)
}

/// Returns the mask of the best blocks' cells, given the scores of blocks' last cells.
fn of_blocks(
    b: &mut Builder<'_>,
    hp: &IndexerHParams,
    tokens: u64,
    scores: Value,
) -> Result<Value, ArchError> {
    const NAME: &str = "indexer_mask";
    let seen = block_input(b, BlockPart::Seen, tokens);
    let selected = best(b, hp.top_k / tokens, scores, seen, "indexer_top_k")?;
    // A block's cells are visible if its last cell is visible.
    let last = block_input(b, BlockPart::Last, tokens);
    let axes = [1, 0, 2, 3];
    let by_cell = b.push(Permute { axes }, vec![selected], NAME)?;
    let by_cell = b.push(GetRows { window: None }, vec![by_cell, last], NAME)?;
    let shown = b.push(Permute { axes }, vec![by_cell], NAME)?;
    if !hp.tail {
        return Ok(shown);
    }
    // A cell in a whole block is never in the tail, so the sum is at most 1.
    let tail = block_input(b, BlockPart::Tail, tokens);
    let shown = b.unary(&[UnaryKind::Exp], shown, NAME)?;
    let tail = b.unary(&[UnaryKind::Exp], tail, NAME)?;
    let either = b.add(shown, tail, NAME)?;
    b.unary(&[UnaryKind::Log], either, NAME)
}

pub(super) fn block_input(b: &mut Builder<'_>, part: BlockPart, tokens: u64) -> Value {
    let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
    b.input(InputKind::Block(BlockInput { part, tokens }))
}
