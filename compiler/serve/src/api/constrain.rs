//! The grammar that a request asks for: `response_format`, `json_schema` or `grammar`.

use serde_json::Value;
use tpc_grammar::Grammar;
use tpc_text::Constraint;

use super::fields::{Fields, shown};
use crate::error::ApiError;
use crate::model::Served;

/// A grammar with the field that asks for it.
pub(crate) struct Asked {
    field: &'static str,
    grammar: Grammar,
}

/// Reads the grammar of a field's value.
type Reader = fn(&Value) -> Result<Option<Grammar>, ApiError>;

/// Returns the grammar that a request asks for, if any.
///
/// # Errors
/// Returns an error that names the field if the grammar is unusable, or if two fields ask for one.
pub(crate) fn grammar(fields: &Fields) -> Result<Option<Asked>, ApiError> {
    let mut found: Option<Asked> = None;
    let all: [(&'static str, Reader); 3] = [
        ("response_format", response_format),
        ("json_schema", |schema| {
            of_schema("json_schema", schema).map(Some)
        }),
        ("grammar", of_text),
    ];
    for (field, read) in all {
        let Some(value) = fields.value(field) else {
            continue;
        };
        let Some(grammar) = read(value)? else {
            continue;
        };
        if let Some(other) = found.replace(Asked { field, grammar }) {
            let message = format!("`{}` and `{field}` cannot be combined", other.field);
            return Err(ApiError::field(field, message));
        }
    }
    Ok(found)
}

impl Asked {
    /// Creates the grammar that a request's field implies.
    pub(crate) const fn new(field: &'static str, grammar: Grammar) -> Asked {
        Asked { field, grammar }
    }

    /// Returns the field that asks for the grammar.
    pub(crate) const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the constraints of `n` answers.
    ///
    /// # Errors
    /// Returns an error that names the field if the grammar does not suit the model's vocabulary.
    pub(crate) fn constraints(
        &self,
        served: &Served,
        n: usize,
    ) -> Result<Vec<Box<dyn Constraint>>, ApiError> {
        let failed = |d| ApiError::of_request(self.field, &d);
        let vocabulary = served.vocabulary().map_err(failed)?;
        (0..n)
            .map(|_| self.grammar.constraint(vocabulary).map_err(failed))
            .collect()
    }
}

/// Reads OpenAI's `response_format`: text, a JSON object, or JSON with a schema.
fn response_format(value: &Value) -> Result<Option<Grammar>, ApiError> {
    const FIELD: &str = "response_format";
    match value.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        // llama.cpp's clients may give a schema here.
        Some("json_object") => match value.get("schema").filter(|s| !s.is_null()) {
            Some(schema) => of_schema(FIELD, schema).map(Some),
            None => Ok(Some(Grammar::json_object())),
        },
        Some("json_schema") => {
            let schema = value.pointer("/json_schema/schema").or(value.get("schema"));
            let schema = schema.ok_or_else(|| {
                ApiError::field(FIELD, "`response_format.json_schema.schema` is missing")
            })?;
            of_schema(FIELD, schema).map(Some)
        }
        _ => Err(ApiError::field(
            FIELD,
            format!(
                "`response_format` must have the type `text`, `json_object` or `json_schema`, not {}",
                shown(value)
            ),
        )),
    }
}

fn of_schema(field: &'static str, schema: &Value) -> Result<Grammar, ApiError> {
    Grammar::json_schema(schema).map_err(|d| ApiError::of_request(field, &d))
}

/// Reads a grammar: llama.cpp's GBNF, or Lark if the text begins with `%llguidance`.
fn of_text(value: &Value) -> Result<Option<Grammar>, ApiError> {
    const FIELD: &str = "grammar";
    let text = value.as_str().ok_or_else(|| {
        ApiError::field(
            FIELD,
            format!("`grammar` must be a text, not {}", shown(value)),
        )
    })?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    let grammar = match text.trim_start().starts_with("%llguidance") {
        true => Grammar::lark(text),
        false => Grammar::gbnf(text),
    };
    grammar
        .map(Some)
        .map_err(|d| ApiError::of_request(FIELD, &d))
}
