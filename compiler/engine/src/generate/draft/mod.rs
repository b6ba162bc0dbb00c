//! Sources of drafted tokens.
//!
//! - a `source` drafts tokens, and the model checks them in its next batch;
//! - `blocks` uses the model's own drafting blocks;
//! - `ngram` repeats earlier text;
//! - `model` asks a second, smaller model with the same `vocabulary`;
//! - `pace` decides how many tokens to draft.

mod blocks;
mod model;
mod ngram;
mod pace;
mod source;
mod vocabulary;

pub use blocks::BlockDrafts;
pub use model::ModelDrafts;
pub use ngram::{NgramDrafts, NgramSizes};
pub use pace::Pace;
pub use source::{DraftRequest, DraftSource};
pub use vocabulary::same_vocabulary;
