//! The forms of grammars.

use llguidance::api::TopLevelGrammar;
use serde_json::{Value, json};
use tpc_diag::Diagnostic;
use tpc_text::Constraint;

use crate::compile::{compile, with_stack};
use crate::errors::{invalid, too_large};
use crate::vocabulary::Vocabulary;
use crate::{gbnf, limits, schema};

/// A form that an answer must have.
#[derive(Clone, Debug)]
pub struct Grammar {
    source: TopLevelGrammar,
    /// The JSON schema, to find the place of an error.
    schema: Option<Value>,
    /// The name in diagnostics.
    name: &'static str,
}

impl Grammar {
    /// Returns the grammar of JSON objects.
    pub fn json_object() -> Grammar {
        let schema = json!({"type": "object"});
        Grammar {
            source: TopLevelGrammar::from_json_schema(schema::with_options(schema.clone())),
            schema: Some(schema),
            name: "JSON schema",
        }
    }

    /// Returns the grammar of a JSON schema. Objects have their properties in the schema's order. An object that lists its
    /// properties has no others, unless the schema permits them by name (`additionalProperties`).
    ///
    /// # Errors
    /// Returns TPC0596 if the schema is neither an object nor `true`, TPC0597 if it is too large.
    pub fn json_schema(schema: &Value) -> Result<Grammar, Diagnostic> {
        let schema = schema::checked(schema)?;
        Ok(Grammar {
            source: TopLevelGrammar::from_json_schema(schema::prepared(&schema)),
            schema: Some(schema),
            name: "JSON schema",
        })
    }

    /// Returns a grammar in the Lark format of llguidance, whose first rule is `start`.
    ///
    /// # Errors
    /// Returns TPC0597 if the grammar is too large.
    pub fn lark(text: &str) -> Result<Grammar, Diagnostic> {
        let name = "Lark grammar";
        check_length(text, name)?;
        if text.trim().is_empty() {
            let help = "define the rule `start`, such as start: \"yes\" | \"no\"";
            return Err(invalid(name, "the grammar is empty", help));
        }
        Ok(Grammar {
            source: TopLevelGrammar::from_lark(text.to_owned()),
            schema: None,
            name,
        })
    }

    /// Returns the grammar of a regular expression, which must match the whole answer. Rust's crate `regex` defines the
    /// syntax. The anchors `^` and `$` at the ends have no effect.
    ///
    /// # Errors
    /// Returns TPC0596 if the expression is invalid, TPC0597 if it is too large.
    pub fn regex(text: &str) -> Result<Grammar, Diagnostic> {
        let name = "regular expression";
        check_length(text, name)?;
        let inner = unanchored(text);
        let source = match inner.is_empty() {
            true => TopLevelGrammar::from_lark("start: \"\"".to_owned()),
            false => TopLevelGrammar::from_regex(inner),
        };
        Ok(Grammar {
            source,
            schema: None,
            name,
        })
    }

    /// Returns a grammar in GBNF, llama.cpp's format, whose first rule is `root`. References to tokens are not supported.
    ///
    /// # Errors
    /// Returns TPC0596 with the line and column of an error, TPC0597 if the grammar is too large.
    pub fn gbnf(text: &str) -> Result<Grammar, Diagnostic> {
        let name = "GBNF grammar";
        check_length(text, name)?;
        let lark = with_stack(|| gbnf::to_lark(text)).map_err(|e| too_large(name, &e))??;
        Ok(Grammar {
            source: TopLevelGrammar::from_lark(lark),
            schema: None,
            name,
        })
    }

    /// Prepares the constraint of one answer. Takes milliseconds for usual grammars, so a server does this outside the
    /// thread that decodes.
    ///
    /// # Errors
    /// Returns TPC0596 if the grammar is invalid, TPC0597 if it needs too much work.
    pub fn constraint(&self, vocabulary: &Vocabulary) -> Result<Box<dyn Constraint>, Diagnostic> {
        let place = |message: &str| match &self.schema {
            Some(schema) => schema::place(schema, message),
            None => self.name.to_owned(),
        };
        let matcher = compile(&self.source, vocabulary, place)?;
        Ok(Box::new(matcher))
    }
}

/// Checks the length of a text.
fn check_length(text: &str, name: &str) -> Result<(), Diagnostic> {
    match text.len() > limits::LONGEST {
        true => {
            let message = format!(
                "the {name} has {} bytes; the limit is {}",
                text.len(),
                limits::LONGEST
            );
            Err(too_large(name, &message))
        }
        false => Ok(()),
    }
}

/// Removes the anchors at both ends.
fn unanchored(text: &str) -> &str {
    let text = text.strip_prefix('^').unwrap_or(text);
    let Some(inner) = text.strip_suffix('$') else {
        return text;
    };
    let escapes = inner.bytes().rev().take_while(|&b| b == b'\\').count();
    match escapes % 2 {
        0 => inner,
        _ => text,
    }
}
