//! The rules of a grammar in llguidance's Lark syntax.

use std::fmt::Write as _;

use serde_json::Value;

/// The rules of a grammar.
pub(super) struct Rules<'a> {
    text: String,
    count: usize,
    special: &'a dyn Fn(&str) -> Option<u32>,
}

impl<'a> Rules<'a> {
    /// Starts a grammar. `special` returns the id of a marker that is one special token.
    pub(super) fn new(special: &'a dyn Fn(&str) -> Option<u32>) -> Rules<'a> {
        Rules {
            text: String::new(),
            count: 0,
            special,
        }
    }

    /// Returns the rules as text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns a marker: a special token, or else text.
    pub(super) fn mark(&self, marker: &str) -> String {
        match (self.special)(marker) {
            Some(id) => format!("<[{id}]>"),
            None => literal(marker),
        }
    }

    /// Returns any text up to and with a marker.
    pub(super) fn until(&mut self, marker: &str) -> String {
        match (self.special)(marker) {
            Some(id) => format!("TEXT <[{id}]>"),
            None => {
                let suffix = format!("[suffix={}]", literal(marker));
                self.rule(&suffix, "TEXT")
            }
        }
    }

    /// Adds a rule with some attributes. Returns its name.
    pub(super) fn rule(&mut self, attributes: &str, body: &str) -> String {
        let name = format!("r{}", self.count);
        self.count += 1;
        let _ = writeln!(self.text, "{name}{attributes}: {body}");
        name
    }

    /// Returns the name of the rule that is `ahead` rules after the last one.
    pub(super) fn next(&self, ahead: usize) -> String {
        format!("r{}", self.count + ahead)
    }

    /// Adds a rule for the JSON values of a schema.
    pub(super) fn json(&mut self, schema: &Value) -> String {
        self.rule("", &format!("%json {schema}"))
    }
}

/// Returns a text as a literal.
pub(super) fn literal(text: &str) -> String {
    Value::from(text).to_string()
}
