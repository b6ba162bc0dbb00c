//! # Text: tokenization with a GGUF file's own metadata
//!
//! - A [`Tokenizer`] converts text to token ids, using the file's vocabulary and rules. A file with an unknown
//!   tokenizer or contradictory lists is rejected with a diagnostic. The file is not trusted.
//! - A [`Detokenizer`] converts ids to text incrementally. Its output is always valid UTF-8.
//! - A [`ChatTemplate`] renders a conversation to a prompt, using the template in the file.
//! - A [`Sampler`] chooses the next token from the logits.
//!
//! A text is tokenized in these steps:
//!
//! 1. `partition` extracts the special tokens in the text: user-defined tokens always, control tokens only if the
//!    caller requests this.
//! 2. For byte-level BPE, `pre` splits the rest into words with the pre-tokenizer named by `tokenizer.ggml.pre`. One
//!    table has a row for each name.
//! 3. `models` has an algorithm for each `tokenizer.ggml.model`. BPE and SentencePiece merge neighbours and share the
//!    algorithm in `merge`. The others search for tokens that are prefixes of the text and share the trie in `trie`.
//!
//! Invariants:
//!
//! - Tokenization takes at most `O(n log n)` time for a given vocabulary, and never panics.
//! - The same file and text give the same ids on every machine.
//! - Ids are indices into the file's token list, below [`Tokenizer::len`].

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
