//! Formats of tool calls.
//!
//! - `format` recognises a model's format from its chat template; `shape` has the format's markers.
//! - `generic` describes tools in a system message, for templates that do not read tools.
//! - `answer` parses a streamed answer into content, reasoning and calls (`output`). It finds markers and leaves the rest
//!   to readers: `head` and `harmony` read names; `list`, `object` and `arguments` JSON; `tags` and `gemma` other syntax;
//!   `reply` answers of the generic format.
//! - `grammar` writes grammars (`rules`) that force calls; `typed` writes their arguments for formats without JSON.
//! - `scanner` finds the end of a JSON value; `schema` gives the types of values in tags.

mod answer;
mod arguments;
mod format;
mod gemma;
pub(crate) mod generic;
mod grammar;
mod harmony;
mod head;
mod list;
mod object;
mod output;
mod reader;
mod reply;
mod rules;
mod scanner;
mod schema;
mod shape;
mod tags;
mod typed;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use answer::{AnswerParser, Reasoning};
pub use format::ToolFormat;
pub use grammar::ToolChoice;
pub use output::Delta;
