//! The prompt of a chat request.

use std::time::SystemTime;

use serde_json::{Map, Value};
use tpc_text::{ChatRequest, ChatTemplate, Constraint, Ending, Reasoning, Show, ToolFormat};

use super::constrain;
use super::fields::Fields;
use super::form::Form;
use super::tools::Tools;
use crate::error::ApiError;
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
    n: usize,
) -> Result<ChatPrompt, ApiError> {
    let tools = Tools::read(fields)?;
    let text = chat_text(served, fields, &tools)?;
    let tokenizer = &served.model.tokenizer;
    let template = template(served)?;
    let format = template.tool_format();
    let reasoning = reasoning(fields, template, &text)?;
    let implied = tools.grammar(tokenizer, format, reasoning)?;
    let asked = match (constrain::grammar(fields)?, implied) {
        (Some(asked), Some(_)) if tools.is_required() => {
            let message = format!(
                "`{}` and a required tool call cannot be combined",
                asked.field()
            );
            return Err(ApiError::field(asked.field(), message));
        }
        (Some(asked), _) | (None, Some(asked)) => Some(asked),
        (None, None) => None,
    };
    let constraints = match asked {
        Some(asked) => asked.constraints(served, n)?,
        None => Vec::new(),
    };
    let form = Form::new(template, &tools, reasoning);
    Ok(ChatPrompt {
        tokens: tokenizer.encode_prompt(&text),
        constraints,
        show: form.show(),
        form,
    })
}

/// Returns the place of an answer's reasoning: `reasoning_format`, and the end of the prompt.
fn reasoning(
    fields: &Fields,
    template: &ChatTemplate,
    prompt: &str,
) -> Result<Reasoning, ApiError> {
    const FIELD: &str = "reasoning_format";
    let given: Option<String> = fields.get(FIELD, "`auto` or `none`")?;
    match given.as_deref() {
        Some("none") => Ok(Reasoning::InContent),
        Some("auto" | "deepseek" | "deepseek-legacy") | None => {
            match Reasoning::after_prompt(template.tool_format(), prompt) {
                // A grammar must not offer reasoning to a model that was not trained for it.
                Reasoning::Separate if !reasons(template) => Ok(Reasoning::InContent),
                found => Ok(found),
            }
        }
        Some(other) => {
            let message = format!("`{FIELD}` must be `auto` or `none`, not {other:?}");
            Err(ApiError::field(FIELD, message))
        }
    }
}

/// True if a template has markers of reasoning.
fn reasons(template: &ChatTemplate) -> bool {
    let source = template.source();
    let markers = ["think>", "THINK", "thought"];
    template.tool_format() == ToolFormat::Harmony || markers.iter().any(|m| source.contains(m))
}

fn template(served: &Served) -> Result<&ChatTemplate, ApiError> {
    let template = served.model.template.as_ref();
    template.map_err(|d| ApiError::of_request("messages", d))
}

/// Returns the text of a rendered chat.
///
/// # Errors
/// Returns an error of the request's field.
pub(crate) fn chat_text(
    served: &Served,
    fields: &Fields,
    tools: &Tools,
) -> Result<String, ApiError> {
    let messages: Option<Vec<Value>> = fields.get("messages", "a list of messages")?;
    let messages = messages.ok_or_else(|| ApiError::field("messages", "`messages` is missing"))?;
    if messages.is_empty() {
        return Err(ApiError::field("messages", "`messages` is empty"));
    }
    let variables: Option<Map<String, Value>> = fields.get("chat_template_kwargs", "an object")?;
    // Some templates close the reasoning at once if the variable is missing.
    let mut variables = variables.unwrap_or_default();
    variables
        .entry("enable_thinking")
        .or_insert(Value::Bool(true));
    let generates = fields.flag("add_generation_prompt", true)?;
    let request = ChatRequest {
        messages: &messages,
        tools: tools.list(),
        ending: match generates {
            true => Ending::Answer,
            false => Ending::Message,
        },
        now: Some(SystemTime::now()),
        variables: &variables,
    };
    let prompt = template(served)?.render_request(&served.model.tokenizer, &request);
    let prompt = prompt.map_err(|d| ApiError::of_request("messages", &d))?;
    Ok(prompt.text)
}
