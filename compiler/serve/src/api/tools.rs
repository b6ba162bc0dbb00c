//! The tools of a chat request.

use serde_json::Value;
use tpc_grammar::Grammar;
use tpc_text::{Reasoning, Tokenizer, ToolChoice, ToolFormat};

use super::constrain::Asked;
use super::fields::{Fields, shown};
use crate::error::ApiError;

/// Maximum number of tools, as OpenAI documents.
const MOST: usize = 128;

/// The tools that an answer may call.
#[derive(Clone, Debug)]
pub(crate) struct Tools {
    list: Vec<Value>,
    choice: ToolChoice,
    parallel: bool,
}

impl Tools {
    /// Reads `tools`, `tool_choice` and `parallel_tool_calls`.
    ///
    /// # Errors
    /// Returns an error that names the wrong field.
    pub(crate) fn read(fields: &Fields) -> Result<Tools, ApiError> {
        let list: Option<Vec<Value>> = fields.get("tools", "a list of tools")?;
        let list = list.unwrap_or_default();
        if list.len() > MOST {
            let message = format!(
                "`tools` has {} tools; at most {MOST} are supported",
                list.len()
            );
            return Err(ApiError::field("tools", message));
        }
        for (i, tool) in list.iter().enumerate() {
            if name(tool).is_none_or(str::is_empty) {
                let message = format!(
                    "`tools[{i}]` must be an object with type `function` and function.name, not {}",
                    shown(tool)
                );
                return Err(ApiError::field("tools", message));
            }
        }
        let choice = choice(fields, &list)?;
        let list = match choice {
            None => Vec::new(),
            Some(_) => list,
        };
        Ok(Tools {
            list,
            choice: choice.unwrap_or(ToolChoice::Auto),
            parallel: fields.flag("parallel_tool_calls", false)?,
        })
    }

    /// Returns the tools; empty if the answer may not call one.
    pub(crate) fn list(&self) -> &[Value] {
        &self.list
    }

    /// True if the answer must call a tool.
    pub(crate) fn is_required(&self) -> bool {
        !self.list.is_empty() && self.choice != ToolChoice::Auto
    }

    /// Returns the grammar that the choice needs, if any.
    ///
    /// # Errors
    /// Returns an error if a tool's schema is unusable.
    pub(crate) fn grammar(
        &self,
        tokenizer: &Tokenizer,
        format: ToolFormat,
        reasoning: Reasoning,
    ) -> Result<Option<Asked>, ApiError> {
        if self.list.is_empty() {
            return Ok(None);
        }
        let special = |text: &str| {
            let id = tokenizer.find(text)?;
            let special = tokenizer.ends_generation(id) || tokenizer.kind(id)?.is_special();
            special.then_some(id)
        };
        let list: Vec<Value> = self.list.iter().map(prepared).collect();
        let choice = &self.choice;
        let Some(text) = format.grammar(&list, choice, self.parallel, reasoning, &special) else {
            return Ok(None);
        };
        let grammar = Grammar::lark(&text).map_err(|d| ApiError::of_request("tools", &d))?;
        Ok(Some(Asked::new("tools", grammar)))
    }
}

/// Returns a tool with a schema that keeps arguments short.
fn prepared(tool: &Value) -> Value {
    let mut tool = tool.clone();
    if let Some(schema) = tool.pointer_mut("/function/parameters")
        && schema.as_object().is_some_and(|fields| !fields.is_empty())
    {
        *schema = tpc_grammar::prepared(schema);
    }
    tool
}

/// Returns the name of a tool's function.
fn name(tool: &Value) -> Option<&str> {
    tool.pointer("/function/name")?.as_str()
}

/// Reads `tool_choice`; `None` if the answer may not call a tool.
fn choice(fields: &Fields, tools: &[Value]) -> Result<Option<ToolChoice>, ApiError> {
    const FIELD: &str = "tool_choice";
    let Some(value) = fields.value(FIELD) else {
        return Ok(Some(ToolChoice::Auto));
    };
    match value.as_str() {
        Some("none") => return Ok(None),
        Some("auto") => return Ok(Some(ToolChoice::Auto)),
        Some("required") if tools.is_empty() => {
            return Err(ApiError::field(
                FIELD,
                "`tool_choice` is `required`, but `tools` is empty",
            ));
        }
        Some("required") => return Ok(Some(ToolChoice::Required)),
        _ => {}
    }
    match name(value) {
        Some(wanted) if tools.iter().any(|t| name(t) == Some(wanted)) => {
            Ok(Some(ToolChoice::Named(wanted.to_owned())))
        }
        Some(wanted) => {
            let message = format!("`tool_choice` names {wanted:?}, which is not in `tools`");
            Err(ApiError::field(FIELD, message))
        }
        None => {
            let message = format!(
                "`tool_choice` must be `none`, `auto`, `required` or a function, not {}",
                shown(value)
            );
            Err(ApiError::field(FIELD, message))
        }
    }
}
