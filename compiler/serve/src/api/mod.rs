//! The endpoints: parsing of requests and forms of answers.
//!
//! - `fields` and `parameters` read requests, `crate::error` has errors in OpenAI's form;
//! - `prompt` renders a chat with its `tools`, `form` and `message` give the form of its answer;
//! - `constrain` reads the grammar of an answer;
//! - `answer` sends jobs to the scheduler and collects answers, `stream` writes them as events;
//! - each endpoint is a file: `chat`, `completions`, `embeddings`, `text` (tokenize, detokenize, apply-template),
//!   `status` (health, metrics, models, props, slots).

mod answer;
mod caller;
mod chat;
mod completions;
mod constrain;
mod embeddings;
mod fields;
mod form;
mod message;
mod parameters;
mod prompt;
mod status;
mod stream;
mod text;
mod tools;

use crate::error::ApiError;
pub(crate) use caller::Caller;
pub(crate) use chat::chat;
pub(crate) use completions::completions;
pub(crate) use embeddings::embeddings;
pub(crate) use fields::Fields;
pub(crate) use status::{health, metrics, model, models, props, slots};
pub(crate) use text::{apply_template, detokenize, tokenize};

/// Returns the version that answers name as `system_fingerprint`.
fn fingerprint() -> String {
    format!("tpc-{}", env!("CARGO_PKG_VERSION"))
}

/// Runs work that takes the processor for longer than a moment.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ApiError> + Send + 'static,
) -> Result<T, ApiError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(ApiError::internal("the request's work panicked")))
}
