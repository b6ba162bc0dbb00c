//! System messages of templates that do not support them.

use minijinja::Error;
use serde_json::Value;
use tpc_diag::Diagnostic;

use super::program::{Input, Program};
use crate::codes;
use crate::tokenizer::Tokenizer;

/// Renders a conversation. If the template does not support system messages, prepends the system message to the first
/// user message, with a note.
pub(super) fn write(
    program: &Program,
    tokenizer: &Tokenizer,
    input: &Input<'_>,
) -> Result<(String, Vec<Diagnostic>), Diagnostic> {
    let failed = |e: Error| program.failed(&e);
    let first = program.write(tokenizer, input);
    let Some((system, merged)) = merged(input.messages) else {
        return Ok((first.map_err(failed)?, Vec::new()));
    };
    if first.as_ref().is_ok_and(|text| text.contains(system)) {
        return Ok((first.unwrap_or_default(), Vec::new()));
    }
    let second = Input {
        messages: &merged,
        ..*input
    };
    match (program.write(tokenizer, &second), first) {
        (Ok(text), first) if first.is_err() || text.contains(system) => {
            let message = "the chat template does not support system messages: the system message was put before the first user message";
            let note = Diagnostic::new(&codes::SYSTEM_MERGED, program.file(), message);
            Ok((text, vec![note]))
        }
        (_, Ok(text)) => Ok((text, Vec::new())),
        (_, Err(e)) => Err(failed(e)),
    }
}

/// Merges the leading system message into the first user message. Returns the trimmed system text and the messages;
/// `None` if either message is missing.
fn merged(messages: &[Value]) -> Option<(&str, Vec<Value>)> {
    let text = |m: &Value| m.get("content")?.as_str().map(str::to_owned);
    let role = |m: &Value, name: &str| m.get("role").and_then(Value::as_str) == Some(name);
    let (first, rest) = messages.split_first()?;
    let user = rest.iter().position(|m| role(m, "user"))?;
    let system = first.get("content")?.as_str()?;
    if !role(first, "system") || system.trim().is_empty() {
        return None;
    }
    let mut merged = rest.to_vec();
    let user = merged.get_mut(user)?;
    let content = format!("{system}\n{}", text(user)?);
    user.as_object_mut()?
        .insert("content".to_owned(), content.into());
    Some((system.trim(), merged))
}
