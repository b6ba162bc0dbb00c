//! Hostile grammars give diagnostics in a bounded time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tpc_diag::Diagnostic;
use tpc_grammar::Grammar;
use tpc_text::TokenMask;

use super::vocabularies::Model;
use super::walk::Random;

/// A multiple of the time in an optimised build on an idle machine.
const LONGEST: Duration = Duration::from_secs(20);

/// Prepares a grammar and takes some steps. Returns the first error.
fn try_out(grammar: Result<Grammar, Diagnostic>, model: &Model) -> Result<(), Diagnostic> {
    let started = Instant::now();
    let mut constraint = grammar?.constraint(&model.vocabulary)?;
    let prepared = started.elapsed();
    assert!(prepared < LONGEST, "preparation takes {prepared:?}");
    let mut random = Random::new(1);
    for _ in 0..30 {
        let started = Instant::now();
        let mut mask = TokenMask::all(model.tokenizer.len());
        constraint.mask(&mut mask)?;
        assert!(
            started.elapsed() < LONGEST,
            "a mask takes {:?}",
            started.elapsed()
        );
        let allowed: Vec<u32> = (0..mask.len() as u32)
            .filter(|&id| mask.allows(id))
            .collect();
        constraint.accept(allowed[random.below(allowed.len())])?;
    }
    Ok(())
}

fn nested(depth: usize, inner: Value, wrap: impl Fn(Value) -> Value) -> Value {
    (0..depth).fold(inner, |value, _| wrap(value))
}

fn refused(grammar: Result<Grammar, Diagnostic>, what: &str) -> Diagnostic {
    let model = Model::small();
    match try_out(grammar, &model) {
        Ok(()) => panic!("{what} is not refused"),
        Err(d) => d,
    }
}

#[test]
fn schemas_of_a_wrong_form_name_the_place() {
    let schema = |schema: Value| refused(Grammar::json_schema(&schema), &schema.to_string());
    for wrong in [json!(false), json!(null), json!("object"), json!([1])] {
        assert_eq!(schema(wrong).code.id, "TPC0596");
    }
    let unsupported = json!({"type": "object", "properties": {"a": {"not": {"type": "null"}}}});
    let d = schema(unsupported);
    assert_eq!(d.code.id, "TPC0596");
    let shown = format!("{d:?}");
    assert!(shown.contains("properties/a/not"), "{shown}");
    for wrong in [
        json!({"type": "text"}),
        json!({"$ref": "#/$defs/missing"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"type": "string", "pattern": "("}),
        json!({"type": "integer", "minimum": 2, "maximum": 1}),
        json!({"enum": []}),
        json!({"properties": 1}),
        json!({"type": "array", "minItems": 3, "maxItems": 2}),
        json!({"type": "array", "minItems": -1}),
    ] {
        let d = schema(wrong.clone());
        assert_eq!(d.code.id, "TPC0596", "{wrong}: {d:?}");
    }
}

#[test]
fn large_schemas_are_refused_soon() {
    let object =
        |value: Value| json!({"type": "object", "properties": {"a": value}, "required": ["a"]});
    let items = |value: Value| json!({"type": "array", "items": value});
    let wide: serde_json::Map<_, _> = (0..2_000)
        .map(|i| (format!("k{i}"), json!({"type": "integer"})))
        .collect();
    let long = "x".repeat(200_000);
    let branches: Vec<Value> = (0..200)
        .map(|i| json!({"properties": {format!("p{i}"): {"type": "null"}}}))
        .collect();
    for large in [
        nested(500, json!({"type": "null"}), object),
        nested(100, json!(true), items),
        nested(100, json!(true), |v| json!({"anyOf": [v]})),
        json!({"type": "string", "minLength": 1_000_000_000}),
        json!({"type": "array", "maxItems": u64::MAX}),
        json!({"type": "array", "minItems": 1e300}),
        json!({"const": long}),
        json!({"type": "object", "properties": wide}),
        json!({"$ref": "#/enum/0", "enum": [{"type": "string", "minLength": 1_000_000_000}]}),
        json!({"type": "integer", "multipleOf": 1_000_003}),
        json!({"type": "number", "multipleOf": 1.000_003}),
        json!({"type": "number", "multipleOf": 1e300}),
        json!({"type": "integer", "minimum": -1e300, "maximum": 1e300}),
        json!({"type": "integer", "minimum": i64::MIN, "maximum": u64::MAX}),
        json!({"allOf": [{"anyOf": branches}, {"anyOf": branches}, {"anyOf": branches}]}),
    ] {
        let text: String = large.to_string().chars().take(60).collect();
        let d = refused(Grammar::json_schema(&large), &text);
        assert_eq!(d.code.id, "TPC0597", "{text}: {d:?}");
    }
}

/// Schemas that may be accepted or refused, but soon and without a panic.
#[test]
fn odd_schemas_end_soon() {
    let wide: serde_json::Map<_, _> = (0..900)
        .map(|i| (format!("k{i}"), json!({"type": "integer"})))
        .collect();
    let chain: serde_json::Map<_, _> = (0..2_000)
        .map(|i| {
            (
                format!("d{i}"),
                json!({"$ref": format!("#/$defs/d{}", i + 1)}),
            )
        })
        .collect();
    let doubled: serde_json::Map<_, _> = (0..40)
        .map(|i| {
            let next = json!({"$ref": format!("#/$defs/d{}", i + 1)});
            (format!("d{i}"), json!({"allOf": [next, next]}))
        })
        .collect();
    let branches: Vec<Value> = (0..200)
        .map(|i| json!({"properties": {format!("p{i}"): {"type": "null"}}}))
        .collect();
    let odd = [
        json!({"$ref": "#"}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
        json!({"allOf": [{"$ref": "#"}]}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        json!({"$ref": "#/$defs/d0", "$defs": chain}),
        json!({"$ref": "#/$defs/d0", "$defs": doubled}),
        json!({"type": "object", "properties": wide}),
        json!({"anyOf": branches}),
        json!({"allOf": branches}),
        json!({"type": "string", "pattern": "(((a{1000}){1000}){1000}){1000}"}),
        json!({"type": "array", "items": {"type": "array", "items": {"type": "string", "maxLength": 9_999},
               "maxItems": 9_999}, "maxItems": 9_999}),
        json!({"type": "string", "minLength": 9_999}),
        json!({"type": "string", "pattern": "(a?){100}a{100}"}),
        json!({"type": "string", "pattern": "(.*a.{20})+"}),
        json!({"type": "integer", "multipleOf": 9_999}),
        json!({"type": "number", "multipleOf": 0.000_000_1}),
        json!({"type": "integer", "minimum": 1_000_000 - i64::MAX, "maximum": i64::MAX}),
        json!({"type": "integer", "exclusiveMinimum": -9e18, "exclusiveMaximum": 9e18}),
        json!({"type": "number", "exclusiveMinimum": -9e18, "exclusiveMaximum": 1e-300}),
        json!({"x-guidance": {"whitespace_pattern": "("}}),
        json!({"type": "object", "properties": {"x-guidance": {"x-guidance": 1}}}),
        json!({"type": "integer", "multipleOf": 0}),
        json!({"enum": [nested(60, json!(1), |v| json!([v]))]}),
    ];
    for schema in odd {
        let text = schema.to_string();
        let started = Instant::now();
        let result = try_out(Grammar::json_schema(&schema), &Model::small());
        let text: String = text.chars().take(90).collect();
        println!(
            "{text}: {:?}, {:?}",
            started.elapsed(),
            result.map_err(|d| (d.code.id, d.message))
        );
    }
}

#[test]
fn bad_regular_expressions_and_grammars_are_refused() {
    let deep = format!("{}a{}", "(".repeat(5_000), ")".repeat(5_000));
    for text in [
        "(",
        "[z-a]",
        "a{2,1}",
        "\\p{Nothing}",
        "(?=a)b",
        deep.as_str(),
    ] {
        let d = refused(Grammar::regex(text), text);
        assert!(["TPC0596", "TPC0597"].contains(&d.code.id), "{d:?}");
    }
    let billion: String = (0..60)
        .map(|i| format!("A{i}: A{0} A{0}\n", i + 1))
        .collect();
    let billion = format!("start: A0\n{billion}A60: \"a\"\n");
    let chain: String = (0..9_000).map(|i| format!("r{i}: r{}\n", i + 1)).collect();
    let chain = format!("start: r0\n{chain}r9000: \"a\"\n");
    let brackets = format!("start: {}\"a\"{}", "(".repeat(20_000), ")".repeat(20_000));
    let lark = [
        "",
        "start: missing",
        "start: \"a",
        "start: start",
        "other: \"a\"",
        "start: %json {\"type\": \"text\"}",
        "start: %json {",
        "start: A\nA: B\nB: A",
        "start: /(/",
        "%import nothing.ELSE\nstart: ELSE",
        "start: @other",
        "start: <|no_such_token|>",
        &brackets,
    ];
    for text in lark {
        let short: String = text.chars().take(60).collect();
        let d = refused(Grammar::lark(text), &short);
        assert!(
            ["TPC0596", "TPC0597"].contains(&d.code.id),
            "{short}: {d:?}"
        );
    }
    for text in [
        billion,
        chain,
        "start: (start start | \"a\")+".to_owned(),
        "start: (\"a\"*)*".to_owned(),
    ] {
        let short: String = text.chars().take(60).collect();
        let started = Instant::now();
        let result = try_out(Grammar::lark(&text), &Model::small());
        println!(
            "{short}: {:?}, {:?}",
            started.elapsed(),
            result.map_err(|d| (d.code.id, d.message))
        );
    }
}

#[test]
fn odd_gbnf_ends_soon() {
    let rules = |n: usize, body: &dyn Fn(usize) -> String| {
        let rules: String = (0..n).map(|i| format!("r{i} ::= {}\n", body(i))).collect();
        format!("root ::= r0\n{rules}r{n} ::= \"a\" | \"b\"\n")
    };
    let doubled = rules(60, &|i| format!("r{0} r{0}", i + 1));
    let doubled_recursive = rules(60, &|i| format!("r{0} r{0} | \"x\" root", i + 1));
    let chain = rules(5_000, &|i| format!("r{}", i + 1));
    let words: String = (0..800).map(|i| format!("\"word{i} \" root | ")).collect();
    let starred = format!("root ::= {}\"a\"{}", "(".repeat(60), "*)".repeat(60));
    let odd = [
        doubled,
        doubled_recursive,
        chain,
        format!("root ::= {words}\"end\""),
        starred,
        "root ::= root".to_owned(),
        "root ::= root root | \"\"".to_owned(),
        "root ::= \"\"*".to_owned(),
        "root ::= ((\"a\"{1000}){1000}){1000}".to_owned(),
        "root ::= ((root \"a\"{1000}){1000}){1000} | \"b\"".to_owned(),
        "root ::= [a-z]{10000} | \"a\" root".to_owned(),
        format!("root ::= \"a\"{}", "*".repeat(1_000)),
        format!("root ::= {}\"a\"{}", "(".repeat(1_000), ")".repeat(1_000)),
        format!("root ::= {}", "x".repeat(100_000)),
    ];
    for text in odd {
        let started = Instant::now();
        let result = try_out(Grammar::gbnf(&text), &Model::small());
        let text: String = text.chars().take(60).collect();
        assert!(started.elapsed() < LONGEST, "{text}");
        println!(
            "{text}: {:?}, {:?}",
            started.elapsed(),
            result.map_err(|d| (d.code.id, d.message))
        );
    }
}
