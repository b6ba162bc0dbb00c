//! Prompts that end in an unfinished answer.

use serde_json::Value;
use tpc_diag::Diagnostic;

use super::program::{Input, Program};
use super::system;
use crate::codes;
use crate::tokenizer::Tokenizer;

/// Returns the content of the last message if it is an assistant's text without tool calls.
pub(super) fn unfinished(messages: &[Value]) -> Option<&str> {
    let last = messages.last()?;
    let is_answer = last.get("role")? == "assistant" && last.get("tool_calls").is_none();
    let text = match last.get("content")? {
        Value::Array(parts) => parts.first()?.get("text")?,
        text => text,
    };
    text.as_str().filter(|_| is_answer)
}

/// Renders a conversation up to the end of its last message's content.
///
/// Renders the content with a mark after it, and cuts the prompt at the mark.
pub(super) fn write(
    program: &Program,
    tokenizer: &Tokenizer,
    input: &Input<'_>,
    content: &str,
) -> Result<(String, Vec<Diagnostic>), Diagnostic> {
    let last = input.messages.len().saturating_sub(1);
    let mut mark = "end-of-the-unfinished-answer".to_owned();
    while input.messages.iter().any(|m| m.to_string().contains(&mark)) {
        mark.push('.');
    }
    let mut messages = input.messages.to_vec();
    let place = match messages.get_mut(last).and_then(|m| m.get_mut("content")) {
        Some(Value::Array(parts)) => parts.first_mut().and_then(|p| p.get_mut("text")),
        text => text,
    };
    if let Some(text) = place {
        *text = format!("{content}{mark}").into();
    }
    let marked = Input {
        messages: &messages,
        generation: false,
        ..*input
    };
    let (mut text, notes) = system::write(program, tokenizer, &marked)?;
    let cut = text.rfind(&mark);
    let kept = cut.filter(|at| text[..*at].ends_with(content.trim_start()));
    let Some(end) = kept else {
        let entity = format!("messages[{last}].content");
        let message = "the chat template changes the text of the assistant's last message: tpc cannot continue it";
        return Err(Diagnostic::new(&codes::MESSAGES, entity, message)
            .help("end the request with a user message"));
    };
    text.truncate(end);
    Ok((text, notes))
}
