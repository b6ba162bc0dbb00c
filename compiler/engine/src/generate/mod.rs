//! Text generation.
//!
//! - `prompt` turns a text, conversation or id list into token ids;
//! - a `slot` has a sequence and its answer, and a `sink` receives the answer's tokens;
//! - `generator` decodes all slots in common batches on a `decoder`, and `shares` divides a batch among prompts;
//! - sources of `draft`s guess tokens, with a `confidence`, and the model checks them;
//! - `conversation` continues a chat in a slot, even beyond the context;
//! - `speed` counts tokens and their time.

mod confidence;
mod conversation;
mod decoder;
mod draft;
mod generator;
mod prompt;
mod shares;
mod sink;
mod slot;
mod speed;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use confidence::Confidence;
pub use conversation::Conversation;
pub use decoder::Decoder;
pub use draft::{
    BlockDrafts, DraftRequest, DraftSource, ModelDrafts, NgramDrafts, NgramSizes, Pace,
    same_vocabulary,
};
pub use generator::{Buffers, Generator, PromptOrigin, WhenFull, context_full, fits};
pub use prompt::Prompter;
pub use sink::TokenSink;
pub use slot::{BatchShare, DraftVerdict, End, Frontier, Slot};
pub use speed::{Rate, Speed, Step};
