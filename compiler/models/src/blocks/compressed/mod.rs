//! Attention to rows that serve as keys and values: one row per token of the window, one per block of tokens.

mod pool;
mod rows;

use tpc_ir::Value;
use tpc_ir::op::{Arange, BlockPart, Concat, InputKind, Rope};

use self::rows::Rows;
use super::attention;
use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::{self, CacheKind};
use super::mask::visible_cells;
use super::rotation::Rotation;
use super::{indexer, norm, rope};
use crate::error::ArchError;
use crate::hparams::CompressedHParams;
use crate::size::Size;
use crate::source::TensorRole;

/// Returns attention's output, `[n_embd, n_tokens]`, for the layer's input `x` of the same shape.
pub(crate) fn compressed_attention(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &CompressedHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let tokens = hp.block(cx.layer.index);
    let rotations = Rotations::new(b, cx, tokens)?;
    let latent = latent_queries(b, cx, hp, x)?;
    let q = queries(b, cx, hp, &rotations, latent)?;
    let row = token_rows(b, cx, hp, &rotations, x)?;
    let hadamard = Rotation::for_keys(cx.model.options.cache_type_k, hp.row.n);
    let rotated = |b: &mut Builder<'_>, x, name| match hadamard {
        Some(rotation) => rotation.apply(b, x, name),
        None => Ok(x),
    };
    let q = rotated(b, q, "Qcur_rot")?;
    let row = rotated(b, row, "Kcur_rot")?;
    let mut k = kv_cache::store(b, cx, CacheKind::Keys, row)?;
    let mut mask = visible_cells(b, cx);
    if let Some(tokens) = tokens {
        let blocks = Blocks { tokens, latent };
        let rows = blocks.rows(b, cx, hp, &rotations, x)?;
        let rows = rotated(b, rows, "block_rows_rot")?;
        let rows = kv_cache::store(b, cx, CacheKind::Blocks, rows)?;
        k = b.push(Concat { axis: 1 }, vec![k, rows], "cache_all")?;
        let shown = blocks.mask(b, cx, hp, x)?;
        mask = b.push(Concat { axis: 0 }, vec![mask, shown], "mask_all")?;
    }
    let y = attention::attend(b, cx, [q, k, k], mask, cx.layer.attention_scale)?;
    let y = rotated(b, y, "kqv_rot")?;
    let y = rotations.rotate_back(b, y)?;
    output(b, cx, hp, y)
}

/// A layer's rotations: by token positions, by blocks' first positions, and the inverse.
struct Rotations {
    rope: Option<Rope>,
    positions: Value,
    starts: Value,
}

impl Rotations {
    /// Returns a layer's rotations. `tokens` is the block length, `None` without blocks.
    fn new(
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        tokens: Option<u64>,
    ) -> Result<Rotations, ArchError> {
        let ropes = cx.model.hparams.positions.rope.as_ref();
        let positions = b.input(InputKind::Positions);
        Ok(Rotations {
            rope: ropes.map(|[of_blocks, plain]| match tokens {
                Some(_) => of_blocks.clone(),
                None => plain.clone(),
            }),
            positions,
            starts: match tokens {
                Some(tokens) => rows::starts(b, tokens)?,
                None => positions,
            },
        })
    }

    fn by(
        &self,
        b: &mut Builder<'_>,
        x: Value,
        positions: Value,
        name: &str,
    ) -> Result<Value, ArchError> {
        match &self.rope {
            Some(rope) => rope::rotate_last(b, rope, x, vec![positions], name),
            None => Ok(x),
        }
    }

    fn rotate_back(&self, b: &mut Builder<'_>, x: Value) -> Result<Value, ArchError> {
        const NAME: &str = "kqv_back";
        let Some(rope) = &self.rope else {
            return Ok(x);
        };
        // A divisor of −1 reverses the rotation.
        let signs = Arange::new(-1.0, 0.0, (rope.n_dims / 2).into());
        let signs = b.push(signs, Vec::new(), "rope_back")?;
        rope::rotate_last(b, rope, x, vec![self.positions, signs], NAME)
    }
}

/// Returns the latent vector of queries, `[rank, n_tokens]`.
fn latent_queries(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &CompressedHParams,
    x: Value,
) -> Result<Value, ArchError> {
    let sizes = [cx.model.hparams.embd(), hp.q_rank];
    let q = b.project("attn_q_a", x, sizes, "q_a")?;
    norm::with_weight(b, &cx.model, "attn_q_a_norm", &[hp.q_rank], q, "q_a_norm")
}

/// Returns the normalised, rotated query heads, `[row, heads, n_tokens]`.
fn queries(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &CompressedHParams,
    rotations: &Rotations,
    latent: Value,
) -> Result<Value, ArchError> {
    let sizes = [hp.q_rank, cx.layer.q_width];
    let q = b.project("attn_q_b", latent, sizes, "q")?;
    let heads = [hp.row.n.into(), cx.layer.n_head.into(), b.n_tokens()];
    let q = b.reshape(q, heads, "q")?;
    let q = norm::without_weight(b, &cx.model, q, "q_norm")?;
    rotations.by(b, q, rotations.positions, "Qcur")
}

/// Returns the normalised, rotated rows of tokens, `[row, 1, n_tokens]`.
fn token_rows(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &CompressedHParams,
    rotations: &Rotations,
    x: Value,
) -> Result<Value, ArchError> {
    let sizes = [cx.model.hparams.embd(), hp.row];
    let kv = b.project("attn_kv", x, sizes, "kv")?;
    let kv = norm::with_weight(b, &cx.model, "attn_kv_a_norm", &[hp.row], kv, "kv_norm")?;
    let kv = rows::as_heads(b, kv, hp.row)?;
    rotations.by(b, kv, rotations.positions, "Kcur")
}

struct Blocks {
    tokens: u64,
    latent: Value,
}

impl Blocks {
    fn has_indexer(&self, hp: &CompressedHParams) -> bool {
        self.tokens == hp.form.indexed
    }

    /// Returns the rotated rows of blocks, `[row, 1, n_tokens]`.
    fn rows(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        hp: &CompressedHParams,
        rotations: &Rotations,
        x: Value,
    ) -> Result<Value, ArchError> {
        let rows = Rows {
            tensors: "attn_compressor",
            state: "cache_blocks",
            row: hp.row,
            tokens: self.tokens,
            overlap: self.has_indexer(hp),
        };
        let rows = rows.build(b, cx, x)?;
        let rows = rows::as_heads(b, rows, hp.row)?;
        rotations.by(b, rows, rotations.starts, "block_rows")
    }

    /// Returns the mask of visible rows, `[n_kv, n_tokens]`.
    fn mask(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        hp: &CompressedHParams,
        x: Value,
    ) -> Result<Value, ArchError> {
        let indexer = cx.model.hparams.attention.indexer.as_ref();
        let Some(indexer) = indexer.filter(|_| self.has_indexer(hp)) else {
            return Ok(indexer::block_input(b, BlockPart::Seen, self.tokens));
        };
        let rows = Rows {
            tensors: "indexer_compressor",
            state: "cache_indexer_blocks",
            row: indexer.dim,
            tokens: self.tokens,
            overlap: true,
        };
        let keys = rows.build(b, cx, x)?;
        let starts = rows::starts(b, self.tokens)?;
        let input = indexer::Input {
            x,
            queries: Some(self.latent),
        };
        indexer::mask_of_rows(b, cx, indexer, self.tokens, input, [keys, starts])
    }
}

/// Projects the heads `y: [row, heads, n_tokens]` to the output, `[n_embd, n_tokens]`.
fn output(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &CompressedHParams,
    y: Value,
) -> Result<Value, ArchError> {
    const TENSOR: &str = "attn_output_a";
    let width = hp.group_width(cx.model.arch.name, cx.layer.n_head)?;
    let groups = [width.n.into(), hp.groups.n.into(), b.n_tokens()];
    let y = b.reshape(y, groups, "kqv_groups")?;
    let y = b.swap_heads(y, "kqv_groups")?;
    let name = b.tensor_name(TENSOR, "weight");
    // Files have one matrix per group, or the rows of all groups in one matrix.
    let weight = match b.columns(&name) {
        Some(columns) if columns == hp.out_width.n && hp.groups.n > 1 => {
            let weight = b.require(&name, &[width, hp.out_width], TensorRole::Matrix)?;
            let apart = [width.n.into(), hp.out_rank.n.into(), hp.groups.n.into()];
            b.reshape(weight, apart, TENSOR)?
        }
        _ => {
            let sizes: [Size; 3] = [width, hp.out_rank, hp.groups];
            b.require(&name, &sizes, TensorRole::Matrix)?
        }
    };
    let y = b.mul_mat(weight, y, "attn_out_low")?;
    let y = b.swap_heads(y, "attn_out_low")?;
    let y = b.reshape(y, [hp.out_width.n.into(), b.n_tokens()], "attn_out_low")?;
    let sizes = [hp.out_width, cx.model.hparams.embd()];
    b.project("attn_output_b", y, sizes, "attn_out")
}
