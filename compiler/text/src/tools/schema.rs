//! The tools of a request, and the types of their parameters.

use serde_json::Value;

/// The names and parameters of functions.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions(Vec<(String, Value)>);

impl Functions {
    /// Reads the tools of a request. Skips tools without a name.
    pub(super) fn of(tools: &[Value]) -> Functions {
        let function = |tool: &Value| {
            let name = tool.pointer("/function/name")?.as_str()?.to_owned();
            let parameters = tool.pointer("/function/parameters");
            Some((name, parameters.cloned().unwrap_or_default()))
        };
        Functions(tools.iter().filter_map(function).collect())
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the schema of a function's parameters; null if it is unknown.
    pub(super) fn parameters(&self, name: &str) -> Value {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, p)| p.clone()).unwrap_or_default()
    }
}

/// Adds the types that a schema allows.
fn add_types<'a>(schema: &'a Value, depth: usize, out: &mut Vec<&'a str>) {
    match schema.get("type") {
        Some(Value::String(one)) => out.push(one),
        Some(Value::Array(many)) => out.extend(many.iter().filter_map(Value::as_str)),
        _ => {}
    }
    if let Some(Value::Array(values)) = schema.get("enum") {
        let all_text = values.iter().all(Value::is_string);
        out.extend(all_text.then_some("string"));
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let (Some(Value::Array(all)), true) = (schema.get(key), depth < 8) {
            all.iter().for_each(|s| add_types(s, depth + 1, out));
        }
    }
}

/// True if a JSON value has a type of JSON Schema.
fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// Converts the text of a parameter to JSON.
///
/// Text that is JSON of an allowed type stays. Other text becomes a string. Without a schema, any JSON stays.
pub(super) fn to_json(text: &str, parameters: &Value, parameter: &str) -> String {
    let schema = parameters
        .get("properties")
        .and_then(|p| p.get(parameter))
        .unwrap_or(&Value::Null);
    let mut types = Vec::new();
    add_types(schema, 0, &mut types);
    let trimmed = text.trim();
    let json = match trimmed {
        "True" => "true",
        "False" => "false",
        "None" => "null",
        other => other,
    };
    let string = || Value::from(text).to_string();
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return string();
    };
    // Python's words are JSON only for a type that has them.
    let is_json = json == trimmed;
    let stays = match types.is_empty() {
        true => is_json && !value.is_string(),
        false => types.iter().any(|t| *t != "string" && has_type(&value, t)),
    };
    match stays {
        true => json.to_owned(),
        false => string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_become_json_of_their_type() {
        let parameters = json!({"properties": {
            "s": {"type": "string"}, "i": {"type": "integer"}, "n": {"type": ["number", "null"]}, "b": {"type": "boolean"},
            "o": {"type": "object"}, "e": {"enum": ["1", "2"]}, "u": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        }});
        for (parameter, text, expected) in [
            ("s", "12", "\"12\""),
            ("s", "a\"\n", "\"a\\\"\\n\""),
            ("i", " 12\n", "12"),
            ("i", "12.5", "\"12.5\""),
            ("n", "1.5", "1.5"),
            ("n", "None", "null"),
            ("b", "True", "true"),
            ("b", "yes", "\"yes\""),
            ("o", "{\"a\": [1]}", "{\"a\": [1]}"),
            ("o", "{", "\"{\""),
            ("e", "1", "\"1\""),
            ("u", "null", "null"),
            ("u", "7", "\"7\""),
            ("unknown", "7", "7"),
            ("unknown", "True", "\"True\""),
            ("unknown", "\"x\"", "\"\\\"x\\\"\""),
            ("unknown", "", "\"\""),
        ] {
            assert_eq!(
                to_json(text, &parameters, parameter),
                expected,
                "{parameter}: {text}"
            );
        }
    }
}
