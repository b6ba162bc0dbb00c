//! Messages of answers in OpenAI's form.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Map, Value, json};
use tpc_text::Delta;

/// A message that grows by deltas.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageBuilder {
    content: String,
    reasoning: String,
    calls: Vec<Call>,
}

#[derive(Clone, Debug)]
struct Call {
    id: String,
    name: String,
    arguments: String,
}

impl MessageBuilder {
    /// Appends a change. `ids` begins the ids of calls.
    pub(crate) fn add(&mut self, delta: Delta, ids: &str) {
        match delta {
            Delta::Content(text) => self.content.push_str(&text),
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::CallName { index, name, id } => self.calls.push(Call {
                id: id.unwrap_or_else(|| call_id(ids, index)),
                name,
                arguments: String::new(),
            }),
            Delta::CallArguments { index, text } => {
                if let Some(call) = self.calls.get_mut(index) {
                    call.arguments.push_str(&text);
                }
            }
        }
    }

    /// True if the message calls a tool.
    pub(crate) fn calls_tool(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Returns the message.
    pub(crate) fn json(self) -> Value {
        let mut out = Map::new();
        out.insert("role".to_owned(), "assistant".into());
        let content = match self.content.is_empty() && !self.calls.is_empty() {
            true => Value::Null,
            false => self.content.into(),
        };
        out.insert("content".to_owned(), content);
        if !self.reasoning.is_empty() {
            out.insert("reasoning_content".to_owned(), self.reasoning.into());
        }
        out.insert("refusal".to_owned(), Value::Null);
        if !self.calls.is_empty() {
            let calls = self.calls.into_iter().map(|call| {
                json!({
                    "id": call.id,
                    "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments },
                })
            });
            out.insert("tool_calls".to_owned(), calls.collect());
        }
        Value::Object(out)
    }
}

/// Returns an id of nine letters and digits, the only form that all templates accept.
fn call_id(ids: &str, index: usize) -> String {
    let mut hash = DefaultHasher::new();
    (ids, index).hash(&mut hash);
    let mut rest = hash.finish();
    let digit = |_| {
        let digit = char::from_digit((rest % 36) as u32, 36);
        rest /= 36;
        digit
    };
    (0..9).filter_map(digit).collect()
}

/// True for a change of a tool's call.
pub(crate) const fn is_call(delta: &Delta) -> bool {
    matches!(delta, Delta::CallName { .. } | Delta::CallArguments { .. })
}

/// Returns a change in the form of a stream's chunk. `ids` begins the ids of calls.
pub(crate) fn delta_json(delta: &Delta, ids: &str) -> Value {
    match delta {
        Delta::Content(text) => json!({ "content": text }),
        Delta::Reasoning(text) => json!({ "reasoning_content": text }),
        Delta::CallName { index, name, id } => json!({
            "tool_calls": [{
                "index": index,
                "id": id.clone().unwrap_or_else(|| call_id(ids, *index)),
                "type": "function",
                "function": { "name": name, "arguments": "" },
            }]
        }),
        Delta::CallArguments { index, text } => json!({
            "tool_calls": [{ "index": index, "function": { "arguments": text } }]
        }),
    }
}
