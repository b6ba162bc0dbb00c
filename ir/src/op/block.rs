//! Inputs about blocks: consecutive runs of `n` tokens of a sequence, counted from its first token.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use crate::dims::{Dim, Symbol};
use crate::dtype::DType;
use crate::types::TensorType;

/// The content of an input about blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockPart {
    /// Mask of cells with the last token of a block, `f32[n_kv, n_tokens]`: 0 if the token sees the whole block, else
    /// −∞.
    Seen,
    /// Mask of the other visible cells, `f32[n_kv, n_tokens]`: 0 if the token sees the cell but not the whole block,
    /// else −∞.
    Tail,
    /// The cell that holds the last token of each cell's block, or the cell itself if no cell holds that token,
    /// `i32[n_kv]`.
    Last,
    /// Position of the first token of each token's block, laid out as
    /// [`PositionsMrope`](super::InputKind::PositionsMrope), `i32[4 · n_tokens]`.
    Start,
    /// The number of earlier tokens in each token's block, `i32[n_tokens]`.
    Place,
    /// 1 for each token whose sequence has an earlier block, else 0, `f32[1, n_tokens]`.
    Follows,
}

impl BlockPart {
    /// Every part.
    pub const ALL: [BlockPart; 6] = [
        BlockPart::Seen,
        BlockPart::Tail,
        BlockPart::Last,
        BlockPart::Start,
        BlockPart::Place,
        BlockPart::Follows,
    ];

    /// Returns the kind of input in text.
    pub const fn name(self) -> &'static str {
        match self {
            BlockPart::Seen => "block_seen",
            BlockPart::Tail => "block_tail",
            BlockPart::Last => "block_last",
            BlockPart::Start => "block_start",
            BlockPart::Place => "block_place",
            BlockPart::Follows => "block_follows",
        }
    }
}

/// An input about blocks of `tokens` tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockInput {
    /// The content.
    pub part: BlockPart,
    /// Number of tokens per block, at least 1.
    pub tokens: u32,
}

impl BlockInput {
    /// Returns the type for `tokens` tokens; `None` on overflow.
    pub fn ty(self, tokens: &Dim) -> Option<TensorType> {
        let cells = || Dim::symbol(Symbol::NKv);
        Some(match self.part {
            BlockPart::Seen | BlockPart::Tail => {
                TensorType::new(DType::F32, [cells(), tokens.clone()])
            }
            BlockPart::Last => TensorType::new(DType::I32, [cells()]),
            BlockPart::Start => {
                let all = Dim::constant(4).checked_mul(tokens)?;
                TensorType::new(DType::I32, [all])
            }
            BlockPart::Place => TensorType::new(DType::I32, [tokens.clone()]),
            BlockPart::Follows => TensorType::new(DType::F32, [Dim::ONE, tokens.clone()]),
        })
    }

    pub(super) fn attrs(self) -> Attrs {
        vec![
            ("kind", Attr::Word(self.part.name().to_owned())),
            ("tokens", Attr::from(u64::from(self.tokens))),
        ]
    }

    pub(super) fn parse(
        word: &str,
        attrs: &mut AttrReader,
    ) -> Result<Option<BlockInput>, AttrError> {
        let Some(part) = BlockPart::ALL.into_iter().find(|p| p.name() == word) else {
            return Ok(None);
        };
        let tokens = require("tokens", attrs.int("tokens")?)?;
        let tokens = u32::try_from(tokens).ok().filter(|&n| n > 0);
        let tokens = tokens.ok_or(AttrError::Kind {
            name: "tokens",
            expected: "an integer, at least 1",
        })?;
        Ok(Some(BlockInput { part, tokens }))
    }
}
