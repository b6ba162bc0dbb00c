//! Conversations and requests, and the prompts rendered from them.

use std::time::SystemTime;

use serde_json::{Map, Value};
use tpc_diag::Diagnostic;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author's role: `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// Creates a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message {
            role: role.into(),
            content: content.into(),
        }
    }
}

/// The end of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The start of an answer, which the model continues.
    Answer,
    /// The last message, complete.
    Message,
}

/// The values that a template reads.
#[derive(Clone, Debug)]
pub struct Conversation<'a> {
    /// The messages, oldest first.
    pub messages: &'a [Message],
    /// The end of the prompt.
    pub ending: Ending,
    /// The time in UTC. If it is missing, the template may use its own default date.
    pub now: Option<SystemTime>,
    /// Values of template variables such as `enable_thinking`.
    pub switches: &'a [(String, bool)],
}

/// A chat request in the shape of OpenAI's API.
#[derive(Clone, Copy, Debug)]
pub struct ChatRequest<'a> {
    /// The messages, oldest first: objects with `role`, `content` and further fields such as `tool_calls`.
    pub messages: &'a [Value],
    /// The tools: objects such as `{"type": "function", "function": {"name": …, "parameters": …}}`.
    pub tools: &'a [Value],
    /// The end of the prompt. An assistant's last message is continued if this is [`Ending::Answer`].
    pub ending: Ending,
    /// The time in UTC. If it is missing, the template may use its own default date.
    pub now: Option<SystemTime>,
    /// Values of template variables such as `enable_thinking`. They do not replace `messages`, `tools` and tokens.
    pub variables: &'a Map<String, Value>,
}

/// A rendered prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The text, including special tokens.
    pub text: String,
    /// Notes on changes to the conversation.
    pub notes: Vec<Diagnostic>,
}
