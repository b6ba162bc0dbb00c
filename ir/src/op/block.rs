//! Inputs about blocks: runs of equally many consecutive tokens of a sequence, from its first one on.

use super::attrs::{Attr, AttrError, AttrReader, Attrs, require};
use crate::dims::{Dim, Symbol};
use crate::dtype::DType;
use crate::types::TensorType;

/// The fact about blocks that an input states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockPart {
    /// 0 where a cell holds the last token of a block that a token has seen the whole of, and −∞ elsewhere,
    /// `f32[n_kv, n_tokens]`.
    Seen,
    /// 0 where a cell holds a token that a token sees of a block that it has not seen the whole of, and −∞ elsewhere,
    /// `f32[n_kv, n_tokens]`.
    Tail,
    /// Per cell the cell of the last token of its block, or the cell itself where no cell holds that, `i32[n_kv]`.
    Last,
    /// Position of the first token of each token's block, as [`PositionsMrope`](super::InputKind::PositionsMrope),
    /// `i32[4 · n_tokens]`.
    Start,
    /// Per token the tokens of its block before it, `i32[n_tokens]`.
    Place,
    /// Per token 1 where its sequence has a block before that of the token, and 0 elsewhere, `f32[1, n_tokens]`.
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

    /// The kind of input in text.
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

/// An input about blocks of so many tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockInput {
    /// The fact that it states.
    pub part: BlockPart,
    /// Tokens of a block, at least 1.
    pub tokens: u32,
}

impl BlockInput {
    /// The type of the input in a batch of so many tokens; `None` for too many.
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

    /// The input of that kind; `None` for a kind that is not about blocks.
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
            expected: "a number of tokens from 1 on",
        })?;
        Ok(Some(BlockInput { part, tokens }))
    }
}
