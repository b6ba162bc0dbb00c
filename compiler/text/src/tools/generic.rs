//! Tools, calls and their results as plain text, for templates that do not read them.

use serde_json::{Map, Value, json};

/// Returns the instructions for a model whose template does not read tools.
fn instructions(tools: &[Value]) -> String {
    let functions = tools.iter().filter_map(|t| t.get("function"));
    let list = Value::Array(functions.cloned().collect());
    format!(
        "You can call these functions. Each has a name, a description and the JSON schema of its arguments:\n{list}\n\
         Answer with one JSON object and no other text.\n\
         To call functions, answer: {{\"tool_calls\": [{{\"name\": \"<function>\", \"arguments\": {{…}}}}]}}\n\
         To answer the user, answer: {{\"response\": \"<text>\"}}"
    )
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or("")
}

fn text(message: &Value) -> &str {
    message.get("content").and_then(Value::as_str).unwrap_or("")
}

/// Returns the text of an assistant's calls: the answer that the instructions ask for.
fn calls(message: &Value) -> Option<String> {
    let calls = message.get("tool_calls")?.as_array()?.iter();
    let functions = calls.filter_map(|c| c.get("function"));
    let functions: Vec<Value> = functions
        .map(|f| json!({"name": f.get("name"), "arguments": object(f.get("arguments"))}))
        .collect();
    Some(json!({ "tool_calls": functions }).to_string())
}

fn object(arguments: Option<&Value>) -> Value {
    match arguments {
        Some(Value::String(text)) => serde_json::from_str(text).unwrap_or_default(),
        other => other.cloned().unwrap_or_default(),
    }
}

/// Returns the text of a tool's result.
fn result(message: &Value) -> String {
    let mut result = Map::new();
    if let Some(name) = message.get("name") {
        result.insert("tool".to_owned(), name.clone());
    }
    result.insert("content".to_owned(), text(message).into());
    json!({ "tool_response": result }).to_string()
}

fn message(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

/// Rewrites a conversation for a template that does not read tools.
///
/// Adds instructions to the system message. Writes calls as the assistant's text, and results as a user message.
pub(crate) fn as_text(messages: Vec<Value>, tools: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::with_capacity(messages.len() + 1);
    // The results of parallel calls form one message, because some templates require alternating roles.
    let mut joins = false;
    for m in messages {
        let (is_result, calls) = (role(&m) == "tool", calls(&m));
        match (is_result, calls, out.last_mut()) {
            (true, _, Some(last)) if joins => {
                let joined = format!("{}\n{}", text(last), result(&m));
                *last = message("user", &joined);
            }
            (true, ..) => out.push(message("user", &result(&m))),
            (false, Some(calls), _) => {
                let before = text(&m).trim();
                let content = match before.is_empty() {
                    true => calls,
                    false => format!("{before}\n{calls}"),
                };
                out.push(message("assistant", &content));
            }
            (false, None, _) => out.push(m),
        }
        joins = is_result;
    }
    if tools.is_empty() {
        return out;
    }
    let instructions = instructions(tools);
    match out.first_mut() {
        Some(first) if role(first) == "system" => {
            let content = format!("{}\n\n{instructions}", text(first));
            *first = message("system", &content);
        }
        _ => out.insert(0, message("system", &instructions)),
    }
    out
}
