//! Opens schemas to later versions.

use schemars::Schema;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::Value;

/// The mark of an enumeration that gets no further values.
const CLOSED: &str = "x-closed";
/// The keyword for the known values of an enumeration that may get further values.
const EXTENSIBLE: &str = "x-extensible-enum";

/// Permits unknown keys and, in enumerations without the mark `x-closed`, unknown values.
#[derive(Clone, Debug)]
pub(super) struct Open;

impl Transform for Open {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
            schema.remove("additionalProperties");
        }
        words_as_list(schema);
        if schema.remove(CLOSED).is_none()
            && let Some(values) = schema.remove("enum")
        {
            schema.insert(EXTENSIBLE.to_owned(), values);
        }
    }
}

/// Replaces alternatives of single words by a list of the words. The words' descriptions go to the list's description.
fn words_as_list(schema: &mut Schema) {
    let Some(alternatives) = schema.get("oneOf").and_then(Value::as_array) else {
        return;
    };
    let mut words = Vec::new();
    let mut text = schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    for one in alternatives {
        let listed = one.get("enum").or_else(|| one.get(EXTENSIBLE));
        let listed = listed.and_then(Value::as_array);
        let own: Vec<&Value> = match (one.get("const"), listed) {
            (Some(word), None) => vec![word],
            (None, Some(list)) => list.iter().collect(),
            _ => return,
        };
        if let (Some(description), [Value::String(word)]) = (
            one.get("description").and_then(Value::as_str),
            own.as_slice(),
        ) {
            text.push_str(&format!("\n- `{word}`: {description}"));
        }
        words.extend(own.into_iter().cloned());
    }
    schema.remove("oneOf");
    schema.insert("type".to_owned(), "string".into());
    schema.insert("enum".to_owned(), words.into());
    if !text.is_empty() {
        schema.insert("description".to_owned(), text.trim().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemars::json_schema;
    use serde_json::json;

    fn opened(mut schema: Schema) -> Value {
        Open.transform(&mut schema);
        schema.to_value()
    }

    #[test]
    fn unknown_keys_and_values_are_permitted() {
        let schema = json_schema!({
            "type": "object",
            "properties": {"mode": {"type": "string", "enum": ["a", "b"]}},
            "additionalProperties": false
        });
        let expected = json!({
            "type": "object",
            "properties": {"mode": {"type": "string", "x-extensible-enum": ["a", "b"]}}
        });
        assert_eq!(opened(schema), expected);
    }

    #[test]
    fn a_closed_enumeration_stays_one() {
        let schema = json_schema!({"type": "string", "enum": ["a"], "x-closed": true});
        assert_eq!(opened(schema), json!({"type": "string", "enum": ["a"]}));
    }

    #[test]
    fn described_words_become_a_list() {
        let schema = json_schema!({"description": "A link.", "oneOf": [
            {"type": "string", "const": "a", "description": "The first."},
            {"type": "string", "enum": ["b", "c"]}
        ]});
        let expected = json!({
            "type": "string",
            "description": "A link.\n- `a`: The first.",
            "x-extensible-enum": ["a", "b", "c"]
        });
        assert_eq!(opened(schema), expected);
        let other = json!({"oneOf": [{"const": "a"}, {"type": "object"}]});
        assert_eq!(opened(other.clone().try_into().expect("a schema")), other);
    }
}
