//! Grammars of arguments that are not JSON: values in tags, and Gemma's braces.

use serde_json::Value;

use super::rules::{Rules, literal};
use super::tags::{GLM, QWEN};

const QUOTE: &str = "<|\"|>";

/// A parameter of a function.
struct Parameter<'a> {
    name: &'a str,
    schema: Value,
    is_required: bool,
}

/// Returns the parameters of a schema. Each has the definitions to which its schema may refer.
fn parameters(schema: &Value) -> Vec<Parameter<'_>> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array);
    let mut out = Vec::new();
    for (name, own) in properties.into_iter().flatten() {
        let mut own = own.clone();
        for key in ["$defs", "definitions"] {
            if let (Value::Object(fields), Some(definitions)) = (&mut own, schema.get(key)) {
                fields.insert(key.to_owned(), definitions.clone());
            }
        }
        out.push(Parameter {
            name,
            schema: own,
            is_required: required.is_some_and(|r| r.iter().any(|n| n == name)),
        });
    }
    out
}

/// Returns the strings of an enumeration of strings.
fn choices(schema: &Value) -> Option<Vec<&str>> {
    let values = match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => values.iter().collect(),
        (_, Some(value)) => vec![value],
        _ => return None,
    };
    values.into_iter().map(Value::as_str).collect()
}

/// True if all values are strings.
fn is_text(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("string") || choices(schema).is_some()
}

/// Returns alternatives of literals.
fn one_of(choices: &[&str]) -> String {
    let literals: Vec<String> = choices.iter().map(|c| literal(c)).collect();
    format!("({})", literals.join(" | "))
}

/// Returns the parameters of a function in tags: with line ends for Qwen3-Coder, without for GLM 4.5.
pub(super) fn tags(rules: &mut Rules<'_>, schema: &Value, lines: bool) -> String {
    let mut out = Vec::new();
    for parameter in parameters(schema) {
        let name = parameter.name;
        let (head, end) = match lines {
            true => {
                let head = literal(&format!("{}{name}{}\n", QWEN.before_key, QWEN.after_key));
                (head, format!("\n{}", QWEN.after_value))
            }
            false => {
                let (key, value) = (rules.mark(GLM.before_key), rules.mark(GLM.before_value));
                let close = rules.mark(GLM.after_key);
                let head = format!("{key} {} {close} \"\\n\" {value}", literal(name));
                (head, GLM.after_value.to_owned())
            }
        };
        let value = match (choices(&parameter.schema), is_text(&parameter.schema)) {
            (Some(choices), _) => format!("{} {}", one_of(&choices), rules.mark(&end)),
            (None, true) => rules.until(&end),
            (None, false) => {
                let json = rules.json(&parameter.schema);
                format!("{json} {}", rules.mark(&end))
            }
        };
        let pair = rules.rule("", &format!("{head} {value} \"\\n\""));
        out.push(match parameter.is_required {
            true => pair,
            false => format!("{pair}?"),
        });
    }
    out.join(" ")
}

/// Adds the rules of any value in Gemma's syntax. Returns the names for a value, a list, an object and a string.
fn values(rules: &mut Rules<'_>) -> [String; 4] {
    let quote = rules.mark(QUOTE);
    let text = rules.until(QUOTE);
    let string = rules.rule("", &format!("{quote} {text}"));
    // The next three rules refer to each other by their numbers.
    let value = rules.next(0);
    let (list, object) = (rules.next(1), rules.next(2));
    rules.rule(
        "",
        &format!("{string} | DECIMAL | \"true\" | \"false\" | \"null\" | {list} | {object}"),
    );
    rules.rule("", &format!("\"[\" ({value} (\",\" {value})*)? \"]\""));
    let pair = format!("WORD \":\" {value}");
    rules.rule("", &format!("\"{{\" ({pair} (\",\" {pair})*)? \"}}\""));
    [value, list, object, string]
}

/// Returns the arguments of a function in Gemma's syntax: required parameters first, each group in order of names.
pub(super) fn braces(rules: &mut Rules<'_>, schema: &Value) -> String {
    let [any, list, object, string] = values(rules);
    let mut all = parameters(schema);
    all.sort_by(|a, b| (!a.is_required, a.name).cmp(&(!b.is_required, b.name)));
    let mut pairs = Vec::new();
    for parameter in &all {
        let quote = rules.mark(QUOTE);
        let kind = parameter.schema.get("type").and_then(Value::as_str);
        let value = match (choices(&parameter.schema), kind) {
            (Some(choices), _) => format!("{quote} {} {quote}", one_of(&choices)),
            (None, Some("string")) => string.clone(),
            (None, Some("integer")) => "\"-\"? NUMBER".to_owned(),
            (None, Some("number")) => "DECIMAL".to_owned(),
            (None, Some("boolean")) => "(\"true\" | \"false\")".to_owned(),
            (None, Some("array")) => list.clone(),
            (None, Some("object")) => object.clone(),
            _ => any.clone(),
        };
        let head = literal(&format!("{}:", parameter.name));
        pairs.push(rules.rule("", &format!("{head} {value}")));
    }
    let required = all.iter().filter(|p| p.is_required).count();
    let first = pairs[..required].join(" \",\" ");
    let rest = &pairs[required..];
    let body = match required {
        0 => optional(rules, rest),
        _ => {
            let rest: Vec<String> = rest.iter().map(|p| format!("(\",\" {p})?")).collect();
            format!("{first} {}", rest.join(" "))
        }
    };
    format!("\"{{\" {body} \"}}\"")
}

/// Returns any subset of pairs, in order, separated by commas.
fn optional(rules: &mut Rules<'_>, pairs: &[String]) -> String {
    let mut alternatives = Vec::new();
    for (i, pair) in pairs.iter().enumerate() {
        let rest: Vec<String> = pairs[i + 1..]
            .iter()
            .map(|p| format!("(\",\" {p})?"))
            .collect();
        alternatives.push(format!("{pair} {}", rest.join(" ")));
    }
    match alternatives.is_empty() {
        true => String::new(),
        false => format!("{}?", rules.rule("", &alternatives.join(" | "))),
    }
}
