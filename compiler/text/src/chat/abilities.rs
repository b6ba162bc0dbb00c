//! The message shapes that a template supports, found by rendering small conversations.

use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::program::{Input, Program};
use crate::tokenizer::Tokenizer;
use crate::tools::ToolFormat;

/// The message shapes that a template supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Abilities {
    /// True if the template takes the arguments of calls as JSON text; false if it takes an object.
    pub text_arguments: bool,
    /// True if an assistant's content may be null beside calls.
    pub null_content: bool,
    /// True if content must be a list of parts.
    pub typed_content: bool,
    /// True if the template knows the role `developer`.
    pub developer: bool,
}

const USER: &str = "probe-of-user";
const ARGUMENT: &str = "probe_argument";
const ANSWER: &str = "probe-of-tool";

impl Abilities {
    /// Probes a template.
    pub(super) fn of(
        program: &Program,
        tokenizer: &Tokenizer,
        source: &str,
        format: ToolFormat,
    ) -> Abilities {
        let probe = |messages: &[Value], tools: &[Value]| {
            let input = Input {
                messages,
                tools: (format != ToolFormat::Generic && !tools.is_empty()).then_some(tools),
                generation: true,
                now: Some(SystemTime::UNIX_EPOCH),
                variables: &Map::new(),
            };
            program.write(tokenizer, &input).unwrap_or_default()
        };
        let reads = |content: Value| {
            probe(&[json!({"role": "user", "content": content})], &[]).contains(USER)
        };
        let typed = !reads(USER.into()) && reads(json!([{"type": "text", "text": USER}]));
        let text = |text: &str| match typed {
            true => json!([{"type": "text", "text": text}]),
            false => json!(text),
        };
        let parameters = json!({"type": "object", "properties": {ARGUMENT: {"type": "string", "description": "p"}}});
        let tool = json!({"type": "function", "function": {"name": "f", "description": "d", "parameters": parameters}});
        let call = |arguments: Value, content: Value| {
            let call = json!({"id": "call00001", "type": "function", "function": {"name": "probe_f", "arguments": arguments}});
            let messages = [
                json!({"role": "user", "content": text(USER)}),
                json!({"role": "assistant", "content": content, "tool_calls": [call]}),
                json!({"role": "tool", "content": text(ANSWER), "name": "probe_f", "tool_call_id": "call00001"}),
            ];
            // The declaration of the tool is not the call.
            let written = probe(&messages, std::slice::from_ref(&tool));
            let at = written.find(USER).unwrap_or(written.len());
            written[at..].to_owned()
        };
        let object = json!({ARGUMENT: "x"});
        let verbatim = object.to_string();
        let as_text = |content| call(verbatim.clone().into(), content).contains(&verbatim);
        let as_object = |content| {
            let written = call(object.clone(), content);
            written.contains(ARGUMENT) && written.contains("probe_f")
        };
        let takes_object = as_object(text("")) || as_object(Value::Null);
        let takes_text = as_text(text("")) || as_text(Value::Null);
        let text_arguments = takes_text && !(takes_object && format.converts_arguments());
        let null = match text_arguments {
            true => call(verbatim.clone().into(), Value::Null),
            false => call(object.clone(), Value::Null),
        };
        Abilities {
            text_arguments,
            null_content: null.contains(ARGUMENT)
                && !null.contains("None")
                && !null.contains("none"),
            typed_content: typed,
            developer: source.contains("developer"),
        }
    }
}
