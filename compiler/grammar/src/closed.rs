//! Closes objects of JSON schemas.

use serde_json::{Map, Value};

/// Keywords that combine schemas: another schema may add properties to the same object.
const COMBINED: [&str; 6] = ["allOf", "anyOf", "oneOf", "$ref", "if", "not"];

/// Keywords that describe further properties.
const FURTHER: [&str; 4] = [
    "additionalProperties",
    "patternProperties",
    "unevaluatedProperties",
    "propertyNames",
];

/// Forbids further properties in objects that list their properties and say nothing about others. Every answer that the
/// result permits is valid for the schema too.
///
/// A model that may invent properties rarely ends an object. llama.cpp closes these objects, too. A schema with `allOf`
/// stays as it is, because its parts describe one object together.
pub(crate) fn closed(mut schema: Value) -> Value {
    if !has_key(&schema, "allOf") {
        close(&mut schema);
    }
    schema
}

fn has_key(value: &Value, key: &str) -> bool {
    match value {
        Value::Object(fields) => {
            fields.contains_key(key) || fields.values().any(|value| has_key(value, key))
        }
        Value::Array(items) => items.iter().any(|value| has_key(value, key)),
        _ => false,
    }
}

/// Closes a schema and the schemas within.
fn close(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    if lists_all(fields) {
        fields.insert("additionalProperties".to_owned(), false.into());
    }
    for key in ["properties", "$defs", "definitions"] {
        if let Some(Value::Object(schemas)) = fields.get_mut(key) {
            schemas.values_mut().for_each(close);
        }
    }
    for key in ["anyOf", "oneOf", "prefixItems"] {
        if let Some(Value::Array(schemas)) = fields.get_mut(key) {
            schemas.iter_mut().for_each(close);
        }
    }
    if let Some(items) = fields.get_mut("items") {
        close(items);
    }
}

/// True if a schema lists all properties that it requires, and says nothing about others.
fn lists_all(fields: &Map<String, Value>) -> bool {
    let Some(Value::Object(properties)) = fields.get("properties") else {
        return false;
    };
    let required = fields.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten();
    let least = fields.get("minProperties").and_then(Value::as_u64);
    !properties.is_empty()
        && least.is_none_or(|n| n <= properties.len() as u64)
        && COMBINED
            .iter()
            .chain(&FURTHER)
            .all(|key| !fields.contains_key(*key))
        && required.all(|name| {
            name.as_str()
                .is_some_and(|name| properties.contains_key(name))
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::closed;

    #[test]
    fn objects_that_list_their_properties_are_closed() {
        let inner = json!({"type": "object", "properties": {"b": {}}});
        let found = closed(json!({
            "properties": {"a": {"type": "array", "items": inner}},
            "required": ["a"],
        }));
        assert_eq!(found["additionalProperties"], false);
        assert_eq!(
            found["properties"]["a"]["items"]["additionalProperties"],
            false
        );
    }

    #[test]
    fn other_objects_stay_as_they_are() {
        for schema in [
            json!({"type": "object"}),
            json!({"properties": {}}),
            json!({"properties": {"a": {}}, "required": ["b"]}),
            json!({"properties": {"a": {}}, "minProperties": 2}),
            json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
            json!({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}),
            json!({"properties": {"a": {}}, "anyOf": [{"required": ["a"]}]}),
            json!(true),
        ] {
            assert_eq!(closed(schema.clone()), schema);
        }
    }
}
