//! Scores of blocks. The cell of a block's last token holds the block's key. Masks hide the keys in other cells.

use tpc_ir::op::{BlockPart, Concat, SoftMax, Sum};
use tpc_ir::{Dim, Value};

use super::{Input, block_input, cells};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::recurrent::conv;
use crate::description::Selection;
use crate::error::ArchError;
use crate::hparams::IndexerHParams;
use crate::size::Size;
use crate::source::TensorRole;

const NAME: &str = "indexer_pool";

/// Returns all cells' scores, `[n_kv, n_tokens]`; `None` without the latent vector of queries.
pub(super) fn scores(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    tokens: u64,
    input: Input,
) -> Result<Option<Value>, ArchError> {
    let Some(q) = cells::queries(b, cx, hp, input)? else {
        return Ok(None);
    };
    let k = cells::projected_keys(b, cx, hp, input.x)?;
    let k = match hp.form.selects {
        Selection::WeightedBlocks => {
            let k = cells::normed_keys(b, cx, hp, k)?;
            weighted_keys(b, cx, hp, tokens, [input.x, k])?
        }
        Selection::Cells | Selection::MeanBlocks | Selection::BlocksPerHead => {
            let k = mean(b, cx, hp, tokens, k)?;
            cells::normed_keys(b, cx, hp, k)?
        }
    };
    let starts = block_input(b, BlockPart::Start, tokens);
    let k = cells::key_heads(b, cx, hp, k, starts)?;
    cells::score_cells(b, cx, hp, input.x, [q, k]).map(Some)
}

/// Returns the mean key of each token and the `tokens - 1` tokens before it, `[dim, n_tokens]`.
fn mean(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    tokens: u64,
    k: Value,
) -> Result<Value, ArchError> {
    let steps = conv::window(b, cx, "cache_indexer", [tokens - 1, hp.dim.n], k)?;
    let mut sum = conv::step(b, &steps, 0, NAME)?;
    for at in 1..tokens {
        let step = conv::step(b, &steps, at, NAME)?;
        sum = b.add(sum, step, NAME)?;
    }
    let mean = b.scale(sum, 1.0 / tokens as f32, NAME)?;
    conv::flat(b, mean, hp.dim.n, NAME)
}

/// Returns sums of the keys of each token and the tokens before it, weighted per element, `[dim, n_tokens]`.
fn weighted_keys(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    hp: &IndexerHParams,
    tokens: u64,
    [x, k]: [Value; 2],
) -> Result<Value, ArchError> {
    let dim = hp.dim.n;
    let sizes = [cx.model.hparams.embd(), hp.dim];
    let gates = "indexer_compressor_gate";
    let gates = b.project(gates, x, sizes, "indexer_gate")?;
    let biases = b.tensor_name("indexer_compressor_ape", "weight");
    let sizes = [hp.dim, Size::new(tokens, "attention.indexer.kpool")];
    let biases = b.require(&biases, &sizes, TensorRole::Bias)?;
    let keys = conv::window(b, cx, "cache_indexer", [tokens - 1, dim], k)?;
    let gates = conv::window(b, cx, "cache_indexer_gate", [tokens - 1, dim], gates)?;
    // Axis 0 holds a block's tokens, axis 1 all other elements.
    let all = Dim::constant(dim).checked_mul(&b.n_tokens());
    let all = all.ok_or(ArchError::Overflow {
        what: "the keys of all tokens of a batch",
        of: dim.to_string(),
    })?;
    let mut stacks: [Option<Value>; 2] = [None, None];
    for at in 0..tokens {
        let key = conv::step(b, &keys, at, NAME)?;
        let gate = conv::step(b, &gates, at, NAME)?;
        let bias = b.slice(biases, 1, at, Dim::ONE, NAME)?;
        let bias = b.reshape(bias, [Dim::ONE, dim.into()], NAME)?;
        let gate = b.add(gate, bias, NAME)?;
        for (stack, part) in stacks.iter_mut().zip([key, gate]) {
            let row = b.reshape(part, [Dim::ONE, all.clone()], NAME)?;
            *stack = Some(match *stack {
                None => row,
                Some(before) => b.push(Concat { axis: 0 }, vec![before, row], NAME)?,
            });
        }
    }
    let [Some(keys), Some(gates)] = stacks else {
        return Ok(k);
    };
    let weights = b.push(SoftMax::with_scale(1.0), vec![gates], NAME)?;
    let sum = b.mul(keys, weights, NAME)?;
    let sum = b.push(Sum { axis: 0 }, vec![sum], NAME)?;
    let sum = conv::as_step(b, sum, dim, NAME)?;
    conv::flat(b, sum, dim, NAME)
}
