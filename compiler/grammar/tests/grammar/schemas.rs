//! Random answers validate against their JSON schema.

use serde_json::{Value, json};
use tpc_grammar::Grammar;
use tpc_text::TokenMask;

use super::vocabularies::Model;
use super::walk::{permits, walk};

/// Returns schemas of the usual keywords.
fn schemas() -> Vec<Value> {
    let address = json!({
        "type": "object",
        "properties": {"street": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]{5}$"}},
        "required": ["street", "zip"],
        "additionalProperties": false
    });
    vec![
        json!({"type": "object"}),
        json!({"type": "string"}),
        json!({"type": "boolean"}),
        json!({"type": "null"}),
        json!({"type": "integer"}),
        json!({"type": "number"}),
        json!(true),
        json!({"enum": ["red", "green", 3, null, {"a": [1]}]}),
        json!({"const": {"kind": "fixed", "n": 1.5}}),
        json!({"type": "integer", "minimum": -5, "maximum": 17}),
        json!({"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5, "maximum": 1000}),
        json!({"type": "number", "minimum": 0.5, "exclusiveMaximum": 2.25}),
        json!({"type": "string", "minLength": 2, "maxLength": 5}),
        json!({"type": "string", "pattern": "^(ab|c)+d?$"}),
        json!({"type": "string", "enum": ["größe", "日本語", "\"quoted\"", "line\nbreak"]}),
        json!({"type": "string", "format": "date"}),
        json!({"type": "string", "format": "uuid"}),
        json!({"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 4}),
        json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "boolean"}], "items": false,
               "minItems": 2}),
        json!({"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
               "required": ["name"]}),
        json!({"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {"type": "string"}}),
        json!({"type": "object", "properties": {"a": true, "b": true}, "required": ["a", "b"],
               "additionalProperties": false}),
        address.clone(),
        json!({"type": "object", "properties": {"people": {"type": "array", "maxItems": 3, "items": {
                "type": "object",
                "properties": {"name": {"type": "string", "maxLength": 8}, "home": {"$ref": "#/$defs/address"}},
                "required": ["name", "home"], "additionalProperties": false}}},
               "required": ["people"], "additionalProperties": false, "$defs": {"address": address}}),
        json!({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "object", "properties": {"x": {"type": "null"}},
               "required": ["x"], "additionalProperties": false}]}),
        json!({"oneOf": [{"type": "boolean"}, {"type": "integer"}]}),
        json!({"allOf": [{"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
               {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}]}),
        json!({"$ref": "#/definitions/node", "definitions": {"node": {"type": "object", "properties": {
               "value": {"type": "integer"}, "next": {"anyOf": [{"type": "null"}, {"$ref": "#/definitions/node"}]}},
               "required": ["value", "next"], "additionalProperties": false}}}),
        json!({"type": ["string", "null"], "description": "A text or nothing.", "title": "t", "default": null}),
        json!({"type": "object", "patternProperties": {"^k[0-9]$": {"type": "boolean"}}, "additionalProperties": false}),
    ]
}

/// Checks a value against a schema.
fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    let (mut known, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
    compiler.enable_format_assertions();
    compiler
        .add_resource("schema.json", schema.clone())
        .unwrap();
    let index = compiler.compile("schema.json", &mut known).unwrap();
    known.validate(value, index).map_err(|e| e.to_string())
}

fn check(model: &Model, schema: &Value, seed: u64) {
    let grammar = Grammar::json_schema(schema).unwrap();
    let (_, text) = walk(&grammar, model, seed);
    let value: Value = match serde_json::from_str(&text) {
        Ok(value) => value,
        // A number such as 1e999 is JSON, but too large for serde_json.
        Err(e) if e.to_string().starts_with("number out of range") => return,
        Err(e) => panic!("{}: {schema}: {text:?}: {e}", model.name),
    };
    if let Err(e) = validate(schema, &value) {
        panic!("{}: {schema}: {text}: {e}", model.name);
    }
    assert!(!text.contains("  ") || text.contains('"'), "{text:?}");
}

#[test]
fn random_answers_validate() {
    for model in [Model::small(), Model::byte_level()] {
        for schema in schemas() {
            (0..8).for_each(|seed| check(&model, &schema, seed));
        }
    }
}

#[test]
fn random_answers_of_real_vocabularies_validate() {
    for model in Model::files() {
        for (seed, schema) in (0..).zip(schemas()) {
            check(&model, &schema, seed);
        }
    }
}

#[test]
fn json_objects_are_objects() {
    for model in Model::all() {
        for seed in 0..4 {
            let (_, text) = walk(&Grammar::json_object(), &model, seed);
            let value: Value = serde_json::from_str(&text).unwrap();
            assert!(value.is_object(), "{}: {text}", model.name);
        }
        for text in [
            "{}",
            "{\"a\": 1}",
            "{\"a\":[1, 2,{\"b\":null}],\"é\":\"x y\"}",
        ] {
            assert!(
                permits(&Grammar::json_object(), &model, text),
                "{}: {text}",
                model.name
            );
        }
        for text in ["", "[]", " {}", "{\"a\":}", "{\"a\":  1}", "{}{}", "{\n}"] {
            assert!(
                !permits(&Grammar::json_object(), &model, text),
                "{}: {text}",
                model.name
            );
        }
    }
}

#[test]
fn answers_outside_a_schema_are_refused() {
    let model = Model::small();
    let cases = [
        (json!({"enum": ["a", "b"]}), "\"a\"", "\"c\""),
        (json!({"type": "integer", "maximum": 9}), "9", "10"),
        (
            json!({"type": "string", "maxLength": 2}),
            "\"日本\"",
            "\"abc\"",
        ),
        (json!({"type": "array", "maxItems": 1}), "[1]", "[1,2]"),
        (
            json!({"type": "object", "properties": {"b": {}, "a": {}}, "required": ["a", "b"]}),
            "{\"b\":1,\"a\":2}",
            "{\"b\":1}",
        ),
    ];
    for (schema, inside, outside) in cases {
        let grammar = Grammar::json_schema(&schema).unwrap();
        assert!(permits(&grammar, &model, inside), "{schema}: {inside}");
        assert!(!permits(&grammar, &model, outside), "{schema}: {outside}");
    }
}

#[test]
fn equal_texts_have_equal_masks() {
    for model in Model::all() {
        let schema = json!({"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "number"}}});
        let grammar = Grammar::json_schema(&schema).unwrap();
        let (ids, _) = walk(&grammar, &model, 5);
        let masks = || {
            let mut constraint = grammar.constraint(&model.vocabulary).unwrap();
            let masks = ids.iter().map(|&id| {
                let mut mask = TokenMask::all(model.tokenizer.len());
                constraint.mask(&mut mask).unwrap();
                constraint.accept(id).unwrap();
                mask
            });
            masks.collect::<Vec<_>>()
        };
        assert_eq!(masks(), masks(), "{}", model.name);
    }
}

#[test]
fn every_end_token_may_end_an_answer() {
    for model in Model::all() {
        let mut constraint = Grammar::lark("start: \"a\"*")
            .unwrap()
            .constraint(&model.vocabulary)
            .unwrap();
        let mut mask = TokenMask::all(model.tokenizer.len() + 7);
        constraint.mask(&mut mask).unwrap();
        for id in 0..mask.len() as u32 {
            let ends = model.tokenizer.ends_generation(id);
            let known = (id as usize) < model.tokenizer.len();
            let mut bytes = Vec::new();
            if known {
                model.tokenizer.piece(id, &mut bytes).unwrap();
            }
            let letters = !bytes.is_empty() && bytes.iter().all(|&b| b == b'a');
            assert_eq!(mask.allows(id), ends || letters, "{}: {id}", model.name);
        }
    }
}
