//! Checks the messages and tools of a request, and adapts messages to a template.

use serde_json::{Map, Value, json};
use tpc_diag::{Code, Diagnostic, suggest};

use super::abilities::Abilities;
use crate::codes;

/// Returns the type of a value, with its article.
fn kind(value: Option<&Value>) -> &'static str {
    match value {
        None => "missing",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "a boolean",
        Some(Value::Number(_)) => "a number",
        Some(Value::String(_)) => "a string",
        Some(Value::Array(_)) => "a list",
        Some(Value::Object(_)) => "an object",
    }
}

/// Describes a field with a wrong type.
fn wrong(code: &'static Code, field: &str, found: Option<&Value>, expected: &str) -> Diagnostic {
    let message = match found {
        None => format!("the field is missing; tpc expects {expected}"),
        found => format!("the field is {}; tpc expects {expected}", kind(found)),
    };
    Diagnostic::new(code, field, message).help(format!("set {field} to {expected}"))
}

/// Checks that a message, and its optional fields, have the known types.
fn check_message(index: usize, message: &Value) -> Result<&Map<String, Value>, Diagnostic> {
    let at = format!("messages[{index}]");
    let Some(fields) = message.as_object() else {
        return Err(wrong(&codes::MESSAGES, &at, Some(message), "an object"));
    };
    let field = |name: &str| (format!("{at}.{name}"), fields.get(name));
    let (name, role) = field("role");
    match role {
        Some(Value::String(role)) if !role.is_empty() => {}
        other => return Err(wrong(&codes::MESSAGES, &name, other, "a string")),
    }
    for optional in ["name", "tool_call_id", "reasoning_content"] {
        let (name, value) = field(optional);
        if !matches!(value, None | Some(Value::Null | Value::String(_))) {
            return Err(wrong(&codes::MESSAGES, &name, value, "a string"));
        }
    }
    Ok(fields)
}

/// Returns the texts of a content field; `None` if it is null or missing.
fn texts(index: usize, content: Option<&Value>) -> Result<Option<Vec<&str>>, Diagnostic> {
    let at = format!("messages[{index}].content");
    let parts = match content {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(vec![text])),
        Some(Value::Array(parts)) => parts,
        other => {
            return Err(wrong(
                &codes::MESSAGES,
                &at,
                other,
                "a string, null or a list of text parts",
            ));
        }
    };
    let mut out = Vec::new();
    for (i, part) in parts.iter().enumerate() {
        let at = format!("{at}[{i}]");
        let kind = part.get("type").and_then(Value::as_str);
        let Some(name) = kind else {
            return Err(wrong(
                &codes::MESSAGES,
                &format!("{at}.type"),
                part.get("type"),
                "a string",
            ));
        };
        let name = match name {
            "text" | "refusal" => name,
            other => {
                let message = format!(
                    "the part has the type {:?}; tpc supports text only",
                    suggest::shorten(other)
                );
                return Err(Diagnostic::new(&codes::MESSAGES, at, message)
                    .help("send the content as text, or remove the part"));
            }
        };
        match part.get(name) {
            Some(Value::String(text)) => out.push(text.as_str()),
            other => {
                return Err(wrong(
                    &codes::MESSAGES,
                    &format!("{at}.{name}"),
                    other,
                    "a string",
                ));
            }
        }
    }
    Ok(Some(out))
}

/// Returns the arguments of a call as a JSON object or as JSON text.
fn arguments(at: &str, found: Option<&Value>, as_text: bool) -> Result<Value, Diagnostic> {
    let object = match found {
        None | Some(Value::Null) => json!({}),
        Some(object @ Value::Object(_)) => object.clone(),
        Some(Value::String(text)) if text.trim().is_empty() => json!({}),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(_)) if as_text => return Ok(text.as_str().into()),
            Ok(object @ Value::Object(_)) => object,
            _ => {
                let message = "the field is not the JSON text of an object";
                return Err(Diagnostic::new(&codes::MESSAGES, at, message)
                    .help("send the arguments as the server wrote them, complete"));
            }
        },
        other => {
            return Err(wrong(
                &codes::MESSAGES,
                at,
                other,
                "the JSON text of an object",
            ));
        }
    };
    Ok(match as_text {
        true => object.to_string().into(),
        false => object,
    })
}

/// Returns the calls of a message with arguments of one type; `None` without calls.
fn calls(index: usize, found: Option<&Value>, as_text: bool) -> Result<Option<Value>, Diagnostic> {
    let at = format!("messages[{index}].tool_calls");
    let calls = match found {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Array(calls)) if calls.is_empty() => return Ok(None),
        Some(Value::Array(calls)) => calls,
        other => return Err(wrong(&codes::MESSAGES, &at, other, "a list")),
    };
    let mut out = calls.clone();
    for (i, call) in out.iter_mut().enumerate() {
        let at = format!("{at}[{i}]");
        let id = call.get("id");
        if !matches!(id, None | Some(Value::Null | Value::String(_))) {
            return Err(wrong(&codes::MESSAGES, &format!("{at}.id"), id, "a string"));
        }
        let at = format!("{at}.function");
        let function = match call.get_mut("function") {
            Some(Value::Object(function)) => function,
            other => {
                return Err(wrong(&codes::MESSAGES, &at, other.as_deref(), "an object"));
            }
        };
        match function.get("name") {
            Some(Value::String(name)) if !name.is_empty() => {}
            other => {
                return Err(wrong(
                    &codes::MESSAGES,
                    &format!("{at}.name"),
                    other,
                    "a string",
                ));
            }
        }
        let given = function.get("arguments");
        let given = arguments(&format!("{at}.arguments"), given, as_text)?;
        function.insert("arguments".to_owned(), given);
    }
    Ok(Some(Value::Array(out)))
}

/// Returns the content in a shape that the template supports.
fn content(texts: Option<Vec<&str>>, calls: bool, abilities: &Abilities) -> Value {
    let text = match texts {
        None if calls && abilities.null_content => return Value::Null,
        None => String::new(),
        Some(texts) => texts.join("\n"),
    };
    match abilities.typed_content {
        true => json!([{"type": "text", "text": text}]),
        false => text.into(),
    }
}

/// Checks messages, and adapts them to a template.
///
/// - Joins the texts of content lists.
/// - Converts the arguments of calls to objects or to text.
/// - Renames the role `developer` to `system`, if the template does not know it.
/// - Removes fields that are null, because templates test if a field is present.
/// - Names the function of a tool's answer, if an earlier call has its id.
pub(super) fn adapt(messages: &[Value], abilities: &Abilities) -> Result<Vec<Value>, Diagnostic> {
    if messages.is_empty() {
        return Err(
            Diagnostic::new(&codes::MESSAGES, "messages", "the list is empty")
                .help("send at least one message"),
        );
    }
    let mut names: Vec<(String, String)> = Vec::new();
    let mut out = Vec::with_capacity(messages.len());
    for (index, message) in messages.iter().enumerate() {
        let mut fields = check_message(index, message)?.clone();
        let role = fields.get("role").and_then(Value::as_str);
        let role = role.unwrap_or_default().to_owned();
        let texts = texts(index, fields.get("content"))?;
        let calls = calls(index, fields.get("tool_calls"), abilities.text_arguments)?;
        if texts.is_none() && role != "assistant" {
            let field = format!("messages[{index}].content");
            let found = fields.get("content");
            return Err(wrong(
                &codes::MESSAGES,
                &field,
                found,
                "a string or a list of text parts",
            ));
        }
        let content = content(texts, calls.is_some(), abilities);
        fields.insert("content".to_owned(), content);
        match calls {
            Some(calls) => {
                names.extend(named(&calls));
                fields.insert("tool_calls".to_owned(), calls);
            }
            None => drop(fields.shift_remove("tool_calls")),
        }
        if role == "developer" && !abilities.developer {
            fields.insert("role".to_owned(), "system".into());
        }
        fields.retain(|key, value| key == "content" || !value.is_null());
        if role == "tool" && !fields.contains_key("name") {
            let id = fields.get("tool_call_id").and_then(Value::as_str);
            let name = names.iter().rev().find(|(known, _)| Some(&**known) == id);
            if let Some((_, name)) = name {
                fields.insert("name".to_owned(), name.as_str().into());
            }
        }
        out.push(Value::Object(fields));
    }
    Ok(out)
}

/// Returns the ids of calls with the names of their functions.
fn named(calls: &Value) -> Vec<(String, String)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let pair = |call: &Value| Some((text(call.get("id"))?, text(call.pointer("/function/name"))?));
    let calls = calls.as_array().map_or(&[][..], Vec::as_slice);
    calls.iter().filter_map(pair).collect()
}

/// Checks that each tool is a function with a name and an optional schema.
pub(super) fn check_tools(tools: &[Value]) -> Result<(), Diagnostic> {
    for (i, tool) in tools.iter().enumerate() {
        let at = format!("tools[{i}]");
        let field = |path: &str| format!("{at}.{path}");
        if tool.get("type").and_then(Value::as_str) != Some("function") {
            let found = tool.get("type");
            return Err(wrong(&codes::TOOLS, &field("type"), found, "\"function\""));
        }
        let name = tool.pointer("/function/name");
        if name.and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(wrong(
                &codes::TOOLS,
                &field("function.name"),
                name,
                "a string",
            ));
        }
        let schema = tool.pointer("/function/parameters");
        if !matches!(schema, None | Some(Value::Null | Value::Object(_))) {
            return Err(wrong(
                &codes::TOOLS,
                &field("function.parameters"),
                schema,
                "an object with a JSON schema",
            ));
        }
        let description = tool.pointer("/function/description");
        if !matches!(description, None | Some(Value::Null | Value::String(_))) {
            return Err(wrong(
                &codes::TOOLS,
                &field("function.description"),
                description,
                "a string",
            ));
        }
    }
    Ok(())
}
