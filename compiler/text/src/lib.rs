//! # Text: from a GGUF file's own metadata to token ids and back
//!
//! - A [`Tokenizer`] turns text into token ids, by the vocabulary and the rules that the file names. A file is refused in
//!   words where its tokenizer is unknown, or its lists contradict each other: nothing that it says is believed.
//! - A [`Detokenizer`] turns ids into text as they come. What it gives out is always whole UTF-8.
//! - A [`ChatTemplate`] makes a prompt of a conversation, by the program that the file has for it.
//! - A [`Sampler`] chooses the next token by the logits of all.
//!
//! How a text is cut, from the outside in:
//!
//! 1. `partition` cuts out the special tokens that are written in it: control tokens where the caller wants them read,
//!    tokens that the user defined always.
//! 2. For byte-level BPE, `pre` cuts the rest into words by the pre-tokenizer that `tokenizer.ggml.pre` names: one table,
//!    a row a name.
//! 3. `models` has an algorithm for each `tokenizer.ggml.model`. BPE and SentencePiece merge neighbours, and share the one
//!    merge (`merge`); the others look for the tokens that a text begins with, and share the one trie (`trie`).
//!
//! Invariants:
//!
//! - No text takes more than `O(n log n)` time for a given vocabulary, and none makes the tokenizer panic.
//! - The same file and text give the same ids on every machine.
//! - Ids are those of the file's list, below [`Tokenizer::len`].

mod byte_level;
mod chat;
mod codes;
mod detokenizer;
mod index;
mod merge;
mod models;
mod partition;
mod pre;
mod sampling;
mod tokenizer;
mod trie;
mod vocabulary;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use chat::{ChatTemplate, Conversation, Ending, Message, Prompt};
pub use codes::{CODES, NO_TOKENIZER};
pub use detokenizer::{Detokenizer, Show, Start};
pub use partition::SpecialText;
pub use pre::names as pre_tokenizers;
pub use sampling::{Sampler, Settings};
pub use tokenizer::{Markers, Tokenizer};
pub use vocabulary::{SpecialTokens, TokenKind};
