//! # Text: tokenization with a GGUF file's own metadata
//!
//! - A [`Tokenizer`] converts text to token ids with the file's vocabulary and rules. The file is untrusted: unknown
//!   tokenizers and contradictory lists are errors.
//! - A [`Detokenizer`] converts ids to text incrementally, always in valid UTF-8.
//! - A [`ChatTemplate`] renders a conversation with the file's template.
//! - A [`Sampler`] chooses the next token from the logits.
//!
//! Steps of tokenization:
//!
//! 1. `partition` finds special tokens. User-defined tokens are always found, control tokens only on request.
//! 2. For byte-level BPE, `pre` splits the remaining text into words, as `tokenizer.ggml.pre` specifies.
//! 3. `models` implements each `tokenizer.ggml.model`. BPE and SentencePiece merge neighbours (`merge`); the others
//!    search for tokens that are prefixes of the text (`trie`).
//!
//! Invariants:
//!
//! - Tokenization takes at most `O(n log n)` time for a given vocabulary, and never panics.
//! - A file and a text give the same ids on every machine.
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
mod tools;
mod trie;
mod vocabulary;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use chat::{ChatRequest, ChatTemplate, Conversation, Ending, Message, Prompt};
pub use codes::{ALL_BANNED, CODES, LOGITS, NO_TOKENIZER};
pub use detokenizer::{Detokenizer, Show, Start};
pub use partition::SpecialText;
pub use pre::names as pre_tokenizers;
pub use sampling::{Constraint, Sampler, Settings, TokenMask, TokenRecord};
pub use tokenizer::{Markers, Tokenizer};
pub use tools::{AnswerParser, Delta, Reasoning, ToolChoice, ToolFormat};
pub use vocabulary::{SpecialTokens, TokenKind};
