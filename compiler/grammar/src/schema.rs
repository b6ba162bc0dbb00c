//! Checks of JSON schemas before llguidance reads them.

use serde_json::{Map, Value, json};
use tpc_diag::{Diagnostic, suggest};

use crate::closed::closed;
use crate::errors::{invalid, too_large};
use crate::limits;

/// The key of llguidance's own options in a schema.
const OPTIONS: &str = "x-guidance";

/// Checks a schema's form, length, nesting and bounds. Returns it without options for llguidance.
///
/// # Errors
/// Returns TPC0596 if the schema is neither an object nor `true`, TPC0597 if it is too large.
pub(crate) fn checked(schema: &Value) -> Result<Value, Diagnostic> {
    let fields = match schema {
        Value::Object(fields) => fields.clone(),
        Value::Bool(true) => Map::new(),
        _ => {
            let message = format!("the schema is {}", suggest::shorten(&schema.to_string()));
            let help = "give an object, such as {\"type\": \"object\"}";
            return Err(invalid("JSON schema", &message, help));
        }
    };
    check_bounds(schema, &mut String::new(), 0)?;
    let length = schema.to_string().len();
    if length > limits::LONGEST {
        let message = format!(
            "the schema has {length} bytes; the limit is {}",
            limits::LONGEST
        );
        return Err(too_large("JSON schema", &message));
    }
    let mut fields = fields;
    fields.remove(OPTIONS);
    Ok(Value::Object(fields))
}

/// Checks nesting and bounds. `place` is the JSON pointer of `value`. Constants count as schemas, because references may
/// name a place in a constant.
fn check_bounds(value: &Value, place: &mut String, depth: usize) -> Result<(), Diagnostic> {
    if depth > limits::DEEPEST {
        let message = format!("the schema is nested more than {} levels", limits::DEEPEST);
        return Err(too_large(&named(place), &message));
    }
    if let Some(fields) = value.as_object().filter(|f| f.len() > limits::WIDEST) {
        let message = format!("{} entries; the limit is {}", fields.len(), limits::WIDEST);
        return Err(too_large(&named(place), &message));
    }
    let length = place.len();
    let mut inside = |key: &str, value: &Value| {
        place.push('/');
        place.push_str(&key.replace('~', "~0").replace('/', "~1"));
        check_number(key, value, place)?;
        let out = check_bounds(value, place, depth + 1);
        place.truncate(length);
        out
    };
    match value {
        Value::Object(fields) => fields
            .iter()
            .try_for_each(|(key, value)| inside(key, value)),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.try_for_each(|(i, value)| inside(&i.to_string(), value))
        }
        _ => Ok(()),
    }
}

/// Checks a number that llguidance expands into states.
fn check_number(key: &str, value: &Value, place: &str) -> Result<(), Diagnostic> {
    let Some(number) = value.as_f64() else {
        return Ok(());
    };
    let (found, limit) = match key {
        "maxItems" | "maxLength" | "minItems" | "minLength" => (number, limits::MOST_REPEATED),
        "multipleOf" => (digits(number), limits::MOST_REPEATED),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
            // llguidance negates negative bounds, and 2^63 overflows.
            let negative = number == -limits::LARGEST;
            let magnitude = if negative {
                f64::INFINITY
            } else {
                number.abs()
            };
            (magnitude, limits::LARGEST)
        }
        _ => return Ok(()),
    };
    match found > limit {
        true => {
            let message = format!("{key} is {value}; the limit is {limit}");
            Err(too_large(&named(place), &message))
        }
        false => Ok(()),
    }
}

/// Returns the digits of a number without its decimal point, as an integer.
fn digits(number: f64) -> f64 {
    if number == 0.0 {
        return 0.0;
    }
    let scaled = (0..20).map(|power| number.abs() * 10f64.powi(power));
    scaled
        .into_iter()
        .find(|x| (x - x.round()).abs() < 1e-9 * x.max(1e-9) && *x >= 1.0)
        .unwrap_or(f64::INFINITY)
}

/// Prepares a JSON schema for a place in a Lark grammar: closes its objects and limits white space, as
/// [`Grammar::json_schema`](crate::Grammar::json_schema) does.
pub fn prepared(schema: &Value) -> Value {
    with_options(closed(schema.clone()))
}

/// Adds tpc's options for llguidance to a schema: at most one space between JSON tokens, so that answers stay short.
pub(crate) fn with_options(mut schema: Value) -> Value {
    if let Some(fields) = schema.as_object_mut() {
        let options = json!({
            "whitespace_flexible": false,
            "whitespace_pattern": " ",
            "coerce_one_of": true,
        });
        fields.insert(OPTIONS.to_owned(), options);
    }
    schema
}

/// Returns the place of an error: the first key or text of the schema that the message quotes.
pub(crate) fn place(schema: &Value, message: &str) -> String {
    let quoted = message.split(['"', '\'', '`']).skip(1).step_by(2);
    let mut found = quoted.filter(|word| !word.is_empty()).filter_map(|word| {
        let mut place = String::new();
        find(schema, word, &mut place).then_some(place)
    });
    found
        .next()
        .map_or_else(|| named(""), |place| named(&place))
}

fn named(place: &str) -> String {
    match place {
        "" => "JSON schema".to_owned(),
        place => format!("JSON schema at #{place}"),
    }
}

/// Extends `place` to the first key or text that equals `word`; returns false if the schema lacks it.
fn find(value: &Value, word: &str, place: &mut String) -> bool {
    let length = place.len();
    let mut inside = |key: &str, value: &Value, is_key: bool| {
        place.push('/');
        place.push_str(&key.replace('~', "~0").replace('/', "~1"));
        let found =
            is_key && key == word || value.as_str() == Some(word) || find(value, word, place);
        if !found {
            place.truncate(length);
        }
        found
    };
    match value {
        Value::Object(fields) => fields.iter().any(|(key, value)| inside(key, value, true)),
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.any(|(i, value)| inside(&i.to_string(), value, false))
        }
        _ => false,
    }
}
