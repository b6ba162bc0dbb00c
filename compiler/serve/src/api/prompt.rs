//! The prompt of a chat request.

use std::time::SystemTime;

use serde_json::Value;
use tpc_text::{Constraint, Conversation, Ending, Message, Show};

use super::error::ApiError;
use super::fields::Fields;
use super::form::Form;
use crate::model::Served;

/// A rendered chat with the form of its answer.
pub(crate) struct ChatPrompt {
    pub(crate) tokens: Vec<u32>,
    pub(crate) constraints: Vec<Box<dyn Constraint>>,
    pub(crate) form: Form,
    pub(crate) show: Show,
}

/// Renders the messages of a request for `n` answers.
///
/// # Errors
/// Returns an error of the request's field.
pub(crate) fn chat_prompt(
    served: &Served,
    fields: &Fields,
    _n: usize,
) -> Result<ChatPrompt, ApiError> {
    let text = chat_text(served, fields)?;
    let tokens = served.model.tokenizer.encode_prompt(&text);
    Ok(ChatPrompt {
        tokens,
        constraints: Vec::new(),
        form: Form,
        show: Show::Text,
    })
}

/// Returns the text of a rendered chat.
///
/// # Errors
/// Returns an error of the request's field.
pub(crate) fn chat_text(served: &Served, fields: &Fields) -> Result<String, ApiError> {
    let template = served.model.template.as_ref();
    let template = template.map_err(|d| ApiError::of_request("messages", d))?;
    let messages: Option<Vec<Value>> = fields.get("messages", "a list of messages")?;
    let messages = messages.ok_or_else(|| ApiError::field("messages", "`messages` is missing"))?;
    let messages: Vec<Message> = messages
        .iter()
        .map(|m| Message::new(m["role"].as_str().unwrap_or(""), m["content"].as_str().unwrap_or("")))
        .collect();
    let conversation = Conversation {
        messages: &messages,
        ending: Ending::Answer,
        now: Some(SystemTime::now()),
        switches: &[],
    };
    let prompt = template.render(&served.model.tokenizer, &conversation);
    Ok(prompt.map_err(|d| ApiError::of_request("messages", &d))?.text)
}
