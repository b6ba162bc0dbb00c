//! Functions of Hugging Face's templates that Jinja lacks.

use std::error::Error as _;
use std::fmt;
use std::time::SystemTime;

use minijinja::value::{Kwargs, Value, from_args};
use minijinja::{Environment, Error, ErrorKind, State};
use regex::Regex;
use serde_json::Map;

use super::{date, json};

#[derive(Debug)]
struct Refusal;

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("raise_exception")
    }
}

impl std::error::Error for Refusal {}

pub(super) fn is_refusal(e: &Error) -> bool {
    let mut at = e.source();
    while let Some(source) = at {
        if source.is::<Refusal>() {
            return true;
        }
        at = source.source();
    }
    false
}

fn raise_exception(message: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message).with_source(Refusal))
}

/// Implements transformers' filter `tojson`: `json.dumps` without escapes for HTML.
#[expect(
    clippy::needless_pass_by_value,
    reason = "the engine passes filter arguments by value"
)]
fn tojson(value: &Value, indent: Option<Value>, options: Kwargs) -> Result<Value, Error> {
    let named = options.get::<Option<Value>>("indent")?;
    let indent = named
        .or(indent)
        .filter(|v| !v.is_none() && !v.is_undefined());
    let indent = match indent {
        None => None,
        Some(v) => Some(
            usize::try_from(v)
                .map_err(|_| Error::new(ErrorKind::InvalidOperation, "indent is not a number"))?,
        ),
    };
    // These options have no effect here, or only change the order of keys.
    for key in ["ensure_ascii", "sort_keys", "separators"] {
        let _ = options.get::<Option<Value>>(key)?;
    }
    options.assert_all_used()?;
    json::dumps(value, indent).map(Value::from)
}

fn method(
    state: &mut State<'_, '_>,
    value: &Value,
    name: &str,
    args: &[Value],
) -> Result<Value, Error> {
    if let (Some(text), "removeprefix" | "removesuffix") = (value.as_str(), name) {
        let (affix,): (&str,) = from_args(args)?;
        let rest = match name {
            "removeprefix" => text.strip_prefix(affix),
            _ => text.strip_suffix(affix),
        };
        return Ok(rest.unwrap_or(text).into());
    }
    minijinja_contrib::pycompat::unknown_method_callback(state, value, name, args)
}

pub(super) fn strftime_now(now: SystemTime) -> Value {
    Value::from_function(move |format: String| date::strftime(now, &format))
}

/// Adds the dates that llama.cpp gives to templates: `date_string` (27 Nov 2026) and `datetime` (Nov 27 2026). Given
/// variables take precedence.
pub(super) fn with_dates(
    variables: &Map<String, serde_json::Value>,
    now: Option<SystemTime>,
) -> Map<String, serde_json::Value> {
    let mut out = variables.clone();
    if let Some(now) = now {
        for (name, format) in [("date_string", "%d %b %Y"), ("datetime", "%b %d %Y")] {
            out.entry(name)
                .or_insert_with(|| date::strftime(now, format).into());
        }
    }
    out
}

pub(super) fn add(environment: &mut Environment<'static>) {
    environment.add_function("raise_exception", raise_exception);
    environment.add_filter("tojson", tojson);
    environment.set_unknown_method_callback(method);
}

/// Removes `{% generation %}` marks, which transformers uses to find answers.
pub(super) fn without_generation_marks(source: &str) -> String {
    let mark = Regex::new(r"\{%([-+]?)\s*(end)?generation\s*([-+]?)%\}")
        .expect("invariant: a constant expression");
    let replaced = mark.replace_all(source, |found: &regex::Captures<'_>| {
        let tag = if found.get(2).is_some() {
            "endif"
        } else {
            "if true"
        };
        format!("{{%{} {tag} {}%}}", &found[1], &found[3])
    });
    replaced.into_owned()
}
