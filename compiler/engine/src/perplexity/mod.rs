//! Perplexity of a text, and the divergence of two models' predictions, as llama-perplexity defines them.
//!
//! - `windows` cuts a text into windows, and `batches` a window into batches;
//! - `estimate` sums the scores of tokens to a perplexity;
//! - `divergence` compares predictions with a base, and `statistics` summarises the differences;
//! - `base_file` stores the predictions of a base.

mod base_file;
mod batches;
mod divergence;
mod estimate;
mod rows;
mod statistics;
mod windows;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use crate::codes::{BASE_FILE, SHORT_TEXT};
pub use base_file::{BaseHeader, BaseReader, BaseWriter};
pub use batches::{Limits, ScoredBatch, batches};
pub use divergence::{BaseRow, Divergence, TokenDivergence};
pub use estimate::Estimate;
pub use rows::{Rows, logits_error};
pub use statistics::{Mean, Statistics, percentile};
pub use windows::{Form, Window, windows};
