//! Rows of blocks. Every token gets the row of a block that ends with it; the masks show only rows at actual block
//! ends.

use tpc_ir::op::{BlockPart, Concat, GetRows};
use tpc_ir::{Dim, Value};

use super::pool::{self, ScoredValues};
use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::blocks::indexer::block_input;
use crate::blocks::norm;
use crate::blocks::recurrent::conv;
use crate::error::ArchError;
use crate::size::Size;
use crate::source::TensorRole;

pub(super) struct Rows<'a> {
    pub(super) tensors: &'a str,
    /// Name of the state with earlier tokens.
    pub(super) state: &'a str,
    pub(super) row: Size,
    pub(super) tokens: u64,
    /// True if rows also cover the previous block.
    pub(super) overlap: bool,
}

impl Rows<'_> {
    /// Returns the normalised rows for the layer's input `x`, `[row, n_tokens]`.
    pub(super) fn build(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        x: Value,
    ) -> Result<Value, ArchError> {
        let parts = if self.overlap { 2 } else { 1 };
        let row = self.row.n;
        let width = Size::product(parts, row, "the elements of rows of blocks")?;
        let both = self.project(b, cx, width, x)?;
        let earlier = parts * self.tokens - 1;
        let steps = conv::window(b, cx, self.state, [earlier, 2 * width.n], both)?.all;
        let part = |b: &mut Builder<'_>, n: u64| -> Result<ScoredValues, ArchError> {
            let mut at = |from| b.slice(steps, 1, from, row.into(), "block_part");
            Ok(ScoredValues {
                values: at(n * row)?,
                scores: at((parts + n) * row)?,
            })
        };
        let first = part(b, 0)?;
        let first = pool::pool(b, first, self.tokens)?;
        let values = match self.overlap {
            false => first.values,
            true => {
                let second = part(b, 1)?;
                let second = pool::pool(b, second, self.tokens)?;
                let [n_t, _] = conv::tokens();
                let before = pool::part(b, first, 0, n_t.clone())?;
                let own = pool::part(b, second, self.tokens, n_t)?;
                let follows = block_input(b, BlockPart::Follows, self.tokens);
                let follows = conv::as_step(b, follows, 1, "block_follows")?;
                pool::merge(b, before, own, Some(follows))?.values
            }
        };
        let rows = conv::flat(b, values, row, "block_rows")?;
        let norm = format!("{}_norm", self.tensors);
        norm::with_weight(b, &cx.model, &norm, &[self.row], rows, "block_rows_norm")
    }

    /// Returns the rows of tokens, and below them their scores, `[2 · width, n_tokens]`.
    fn project(
        &self,
        b: &mut Builder<'_>,
        cx: &LayerContext<'_>,
        width: Size,
        x: Value,
    ) -> Result<Value, ArchError> {
        let sizes = [cx.model.hparams.embd(), width];
        let [kv, gate, ape] = ["kv", "gate", "ape"].map(|t| format!("{}_{t}", self.tensors));
        let values = b.project(&kv, x, sizes, "block_values")?;
        let scores = b.project(&gate, x, sizes, "block_scores")?;
        let places = b.tensor_name(&ape, "weight");
        let sizes = [width, Size::new(self.tokens, "attention.compress_ratios")];
        let places = b.require(&places, &sizes, TensorRole::Bias)?;
        let place = block_input(b, BlockPart::Place, self.tokens);
        let of_place = b.push(
            GetRows { window: None },
            vec![places, place],
            "block_places",
        )?;
        let scores = b.add(scores, of_place, "block_scores")?;
        b.push(Concat { axis: 0 }, vec![values, scores], "block_inputs")
    }
}

/// Returns the positions of blocks' first tokens, `[n_tokens]`.
pub(super) fn starts(b: &mut Builder<'_>, tokens: u64) -> Result<Value, ArchError> {
    let starts = block_input(b, BlockPart::Start, tokens);
    let n = b.n_tokens();
    b.slice(starts, 0, 0, n, "block_starts")
}

/// Returns the rows as heads, `[row, 1, n_tokens]`.
pub(super) fn as_heads(b: &mut Builder<'_>, rows: Value, row: Size) -> Result<Value, ArchError> {
    let dims = [row.n.into(), Dim::ONE, b.n_tokens()];
    b.reshape(rows, dims, "block_rows")
}
