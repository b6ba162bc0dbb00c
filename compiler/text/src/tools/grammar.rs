//! Grammars that force a model to call functions, in llguidance's Lark syntax.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::answer::Reasoning;
use super::format::ToolFormat;
use super::rules::{Rules, literal};
use super::shape::Shape;
use super::typed;

/// A request's choice of functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model chooses between a text and calls.
    Auto,
    /// The model calls at least one function.
    Required,
    /// The model calls this function.
    Named(String),
}

/// A function with the schema of its arguments.
struct Function<'a> {
    name: &'a str,
    schema: Value,
}

/// Joins alternatives.
fn any(of: &[String]) -> String {
    format!("({})", of.join(" | "))
}

/// Returns one call in a format, without the markers around all calls.
fn call(format: ToolFormat, rules: &mut Rules<'_>, function: &Function<'_>) -> String {
    let Function { name, schema } = function;
    let shape = Shape::of(format);
    let open = rules.mark(shape.open.unwrap_or_default());
    let close = rules.mark(shape.close);
    let quoted = literal(name);
    match format {
        ToolFormat::Gemma4 => {
            let head = literal(&format!("call:{name}"));
            let arguments = typed::braces(rules, schema);
            return format!("{open} {head} {arguments} {close}");
        }
        ToolFormat::QwenCoder => {
            let head = literal(&format!("\n<function={name}>\n"));
            let arguments = typed::tags(rules, schema, true);
            return format!("{open} {head} {arguments} \"</function>\\n\" {close}");
        }
        ToolFormat::Glm45 => {
            let head = literal(&format!("{name}\n"));
            let arguments = typed::tags(rules, schema, false);
            return format!("{open} {head} {arguments} {close}");
        }
        _ => {}
    }
    let json = rules.json(schema);
    // An object with the name under one key and the arguments under another, and text around both.
    let object = |before: &str, names: &str, arguments: &str| {
        let head = literal(&format!("{before}\"{names}\": {quoted}, \"{arguments}\": "));
        format!("{head} {json}")
    };
    match format {
        ToolFormat::Hermes => {
            let object = object("\n{", "name", "arguments");
            format!("{open} {object} \"}}\\n\" {close}")
        }
        ToolFormat::Llama3 => format!("{} \"}}\"", object("{", "name", "parameters")),
        ToolFormat::MistralNemo => format!(
            "{} \", \\\"id\\\": \\\"\" ID \"\\\"}}\"",
            object("{", "name", "arguments")
        ),
        ToolFormat::Granite | ToolFormat::Generic => {
            format!("{} \"}}\"", object("{", "name", "arguments"))
        }
        ToolFormat::CommandR7b => format!(
            "\"\\n    {{\\\"tool_call_id\\\": \\\"\" NUMBER {} \"}}\"",
            object("\", ", "tool_name", "parameters")
        ),
        ToolFormat::DeepSeekV3 => {
            let (sep, end) = (
                rules.mark("<｜tool▁sep｜>"),
                rules.mark("<｜tool▁call▁end｜>"),
            );
            let head = literal(&format!("{name}\n```json\n"));
            format!("{open} \"function\" {sep} {head} {json} \"\\n```\" {end}")
        }
        ToolFormat::DeepSeekV31 => {
            let sep = rules.mark("<｜tool▁sep｜>");
            format!("{open} {quoted} {sep} {json} {close}")
        }
        ToolFormat::KimiK2 => {
            let head = literal(&format!("functions.{name}:"));
            let begin = rules.mark("<|tool_call_argument_begin|>");
            format!("{open} {head} NUMBER {begin} {json} {close}")
        }
        ToolFormat::Harmony => {
            let channel = rules.mark("<|channel|>");
            let head = literal(&format!("commentary to=functions.{name} "));
            let (constrain, message) = (rules.mark("<|constrain|>"), rules.mark("<|message|>"));
            format!("{channel} {head} {constrain} \"json\" {message} {json} {close}")
        }
        _ => {
            let arguments = rules.mark("[ARGS]");
            format!("{open} {quoted} {arguments} {json}")
        }
    }
}

/// Returns the texts before, between and after all calls.
fn around(format: ToolFormat, rules: &Rules<'_>) -> (String, String, String) {
    let shape = Shape::of(format);
    let open = rules.mark(shape.open.unwrap_or_default());
    match (format, shape.section) {
        (_, Some((open, close))) => {
            let between = match format {
                ToolFormat::DeepSeekV3 => "\"\\n\"",
                _ => "",
            };
            (rules.mark(open), between.to_owned(), rules.mark(close))
        }
        (ToolFormat::Hermes | ToolFormat::QwenCoder | ToolFormat::Glm45, _) => {
            (String::new(), "\"\\n\"".to_owned(), String::new())
        }
        (ToolFormat::Llama3, _) => (String::new(), "\"; \"".to_owned(), String::new()),
        (ToolFormat::MistralNemo | ToolFormat::Granite, _) => (
            format!("{open} \"[\""),
            "\", \"".to_owned(),
            "\"]\"".to_owned(),
        ),
        (ToolFormat::CommandR7b, _) => (
            format!("{open} \"[\""),
            "\",\"".to_owned(),
            format!("\"\\n]\" {}", rules.mark(shape.close)),
        ),
        (ToolFormat::Generic, _) => (
            "\"{\\\"tool_calls\\\": [\"".to_owned(),
            "\", \"".to_owned(),
            "\"]}\"".to_owned(),
        ),
        _ => Default::default(),
    }
}

/// Returns the reasoning before the calls.
fn reasoning(format: ToolFormat, rules: &mut Rules<'_>, place: Reasoning) -> String {
    if format == ToolFormat::Harmony {
        let (channel, message) = (rules.mark("<|channel|>"), rules.mark("<|message|>"));
        let (text, start) = (rules.until("<|end|>"), rules.mark("<|start|>"));
        return format!("({channel} \"analysis\" {message} {text} {start} \"assistant\")?");
    }
    let (open, close) = Shape::of(format).think;
    match place {
        Reasoning::InContent => String::new(),
        Reasoning::Separate => {
            let (open, text) = (rules.mark(open), rules.until(close));
            format!("({open} {text} SPACE)?")
        }
        Reasoning::Open => format!("{} SPACE", rules.until(close)),
    }
}

/// Returns the functions that a choice allows.
fn functions<'a>(tools: &'a [Value], choice: &ToolChoice) -> Vec<Function<'a>> {
    let function = |tool: &'a Value| {
        let name = tool.pointer("/function/name")?.as_str()?;
        let schema = match tool.pointer("/function/parameters") {
            Some(schema @ Value::Object(fields)) if !fields.is_empty() => schema.clone(),
            _ => json!({"type": "object", "properties": {}, "additionalProperties": false}),
        };
        let allowed = match choice {
            ToolChoice::Named(only) => only == name,
            _ => true,
        };
        allowed.then_some(Function { name, schema })
    };
    tools.iter().filter_map(function).collect()
}

impl ToolFormat {
    /// Returns a grammar, in llguidance's Lark syntax, that forces calls in this format.
    ///
    /// - `parallel` allows more than one call.
    /// - `reasoning` allows reasoning before the calls.
    /// - `special` returns the id of a marker that is one special token. Other markers are text.
    ///
    /// Returns `None` if no grammar is needed or possible:
    /// - [`ToolChoice::Auto`], except for [`ToolFormat::Generic`], which needs a call or a response.
    /// - No tool has the chosen name.
    pub fn grammar(
        self,
        tools: &[Value],
        choice: &ToolChoice,
        parallel: bool,
        place: Reasoning,
        special: &dyn Fn(&str) -> Option<u32>,
    ) -> Option<String> {
        let functions = functions(tools, choice);
        let is_auto = *choice == ToolChoice::Auto;
        if functions.is_empty() || is_auto && self != ToolFormat::Generic {
            return None;
        }
        let mut rules = Rules::new(special);
        let mut calls = Vec::new();
        for function in &functions {
            let body = call(self, &mut rules, function);
            calls.push(rules.rule("", &body));
        }
        let one = any(&calls);
        let (before, between, behind) = around(self, &rules);
        // A gpt-oss message has one call, and ends the answer.
        let more = match parallel && self != ToolFormat::Harmony {
            true => format!("({between} {one})*"),
            false => String::new(),
        };
        let mut answer = format!("{before} {one} {more} {behind}");
        if is_auto {
            let text = rules.json(&json!({"type": "string"}));
            answer = format!("({answer} | \"{{\\\"response\\\": \" {text} \"}}\")");
        }
        let reasoning = reasoning(self, &mut rules, place);
        let mut out = format!("start: {reasoning} {answer}\n{}", rules.text());
        for (name, terminal) in TERMINALS {
            if out.contains(name) {
                let _ = writeln!(out, "{name}: {terminal}");
            }
        }
        Some(out)
    }
}

/// The terminals that rules use.
const TERMINALS: [(&str, &str); 6] = [
    ("TEXT", "/(?s:.*)/"),
    ("SPACE", "/[ \\t\\n]*/"),
    ("NUMBER", "/[0-9]+/"),
    ("ID", "/[a-zA-Z0-9]{9}/"),
    (
        "DECIMAL",
        "/-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?/",
    ),
    ("WORD", "/[a-zA-Z_][a-zA-Z0-9_]*/"),
];
