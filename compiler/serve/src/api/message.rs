//! Messages of answers in OpenAI's form.

use serde_json::{Value, json};

use super::form::Delta;

/// A message that grows by deltas.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageBuilder {
    content: Option<String>,
}

impl MessageBuilder {
    /// Appends a change.
    pub(crate) fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => self.content.get_or_insert_default().push_str(&text),
        }
    }

    /// True if the message calls a tool.
    pub(crate) fn calls_tool(&self) -> bool {
        false
    }

    /// Returns the message.
    pub(crate) fn json(self) -> Value {
        json!({
            "role": "assistant",
            "content": self.content.unwrap_or_default(),
            "refusal": null,
        })
    }
}

/// Returns a change in the form of a stream's chunk.
pub(crate) fn delta_json(delta: &Delta) -> Value {
    match delta {
        Delta::Content(text) => json!({ "content": text }),
    }
}

/// True for a change of a tool's call.
pub(crate) const fn is_call(delta: &Delta) -> bool {
    match delta {
        Delta::Content(_) => false,
    }
}
