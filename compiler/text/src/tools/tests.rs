//! Answers in every format.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{AnswerParser, Delta, Reasoning, ToolChoice, ToolFormat};

/// A parsed answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Parsed {
    content: String,
    reasoning: String,
    calls: Vec<(String, String)>,
    ids: Vec<Option<String>>,
}

impl Parsed {
    fn add(&mut self, deltas: Vec<Delta>) {
        for delta in deltas {
            match delta {
                Delta::Content(text) => self.content += &text,
                Delta::Reasoning(text) => self.reasoning += &text,
                Delta::CallName { index, name, id } => {
                    assert_eq!(index, self.calls.len());
                    self.calls.push((name, String::new()));
                    self.ids.push(id);
                }
                Delta::CallArguments { index, text } => {
                    assert_eq!(index + 1, self.calls.len());
                    self.calls[index].1 += &text;
                }
            }
        }
    }
}

fn tools() -> Vec<Value> {
    let tool = |name: &str, properties: Value| {
        json!({"type": "function", "function": {"name": name,
            "parameters": {"type": "object", "properties": properties}}})
    };
    vec![
        tool(
            "weather",
            json!({"city": {"type": "string"}, "days": {"type": "integer"}, "o": {"type": "object"}}),
        ),
        tool("time", json!({})),
    ]
}

/// Parses an answer that arrives in parts of some lengths.
fn parse_parts(
    format: ToolFormat,
    reasoning: Reasoning,
    text: &str,
    mut lengths: impl Iterator<Item = usize>,
) -> Parsed {
    let mut parser = AnswerParser::new(format, &tools(), reasoning);
    let mut parsed = Parsed::default();
    let mut rest = text;
    while !rest.is_empty() {
        let length = lengths.next().unwrap_or(rest.len()).max(1);
        let end = rest.ceil_char_boundary(length);
        parsed.add(parser.push(&rest[..end]));
        rest = &rest[end..];
    }
    parsed.add(parser.finish());
    parsed
}

#[track_caller]
fn parse(format: ToolFormat, text: &str) -> Parsed {
    let whole = parse_parts(format, Reasoning::Separate, text, std::iter::empty());
    let single = parse_parts(format, Reasoning::Separate, text, std::iter::repeat(1));
    assert_eq!(whole, single, "{text}");
    whole
}

/// Checks the content, reasoning and calls of an answer.
#[track_caller]
fn check(format: ToolFormat, text: &str, content: &str, reasoning: &str, calls: &[(&str, Value)]) {
    let parsed = parse(format, text);
    assert_eq!(parsed.content, content, "{text}");
    assert_eq!(parsed.reasoning, reasoning, "{text}");
    let found: Vec<(&str, Value)> = parsed
        .calls
        .iter()
        .map(|(name, arguments)| {
            let json = serde_json::from_str(arguments);
            (
                name.as_str(),
                json.unwrap_or_else(|e| panic!("{arguments}: {e}")),
            )
        })
        .collect();
    assert_eq!(found, calls, "{text}");
}

/// Arguments with nested JSON, quotes, line ends and other scripts.
fn hard() -> Value {
    json!({"city": "Zü\"rich\" \\ 東京\n</x>", "days": 3, "o": {"a": [1, {"b": null}, "}"], "c": {}}})
}

/// Two calls in a format, with the text around them.
fn two(format: ToolFormat) -> String {
    let one = json!({"name": "weather", "arguments": hard()});
    let llama = json!({"name": "weather", "parameters": hard()});
    let object = hard()["o"].to_string();
    let hard = hard().to_string();
    let city = "Zü\"rich\" \\ 東京\n</x>";
    match format {
        ToolFormat::Hermes => format!(
            "<tool_call>\n{one}\n</tool_call>\n<tool_call>\n{{\"arguments\": {{}}, \"name\": \"time\"}}\n</tool_call>"
        ),
        ToolFormat::Llama3 => {
            format!("<|python_tag|>{llama}; {{\"name\": \"time\", \"parameters\": {{}}}}")
        }
        ToolFormat::MistralNemo => format!(
            "[TOOL_CALLS][{one}, {{\"name\": \"time\", \"arguments\": {{}}, \"id\": \"abcdefghi\"}}]"
        ),
        ToolFormat::Mistral => {
            format!("[TOOL_CALLS]weather[ARGS]{hard}[TOOL_CALLS]time[CALL_ID]abcdefghi[ARGS]{{}}")
        }
        ToolFormat::DeepSeekV3 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{hard}\n```<｜tool▁call▁end｜>\n\
             <｜tool▁call▁begin｜>function<｜tool▁sep｜>time\n```json\n{{}}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        ToolFormat::DeepSeekV31 => format!(
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>weather<｜tool▁sep｜>{hard}<｜tool▁call▁end｜>\
             <｜tool▁call▁begin｜>time<｜tool▁sep｜>{{}}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        ToolFormat::QwenCoder => format!(
            "<tool_call>\n<function=weather>\n<parameter=city>\n{city}\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=o>\n{object}\n</parameter>\n</function>\n</tool_call>\n\
             <tool_call>\n<function=time>\n</function>\n</tool_call>"
        ),
        ToolFormat::Glm45 => format!(
            "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>{city}</arg_value>\n<arg_key>days</arg_key>\n<arg_value>3</arg_value>\n<arg_key>o</arg_key>\n<arg_value>{object}</arg_value>\n</tool_call>\n\
             <tool_call>time\n</tool_call>"
        ),
        ToolFormat::KimiK2 => format!(
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{hard}<|tool_call_end|>\
             <|tool_call_begin|>functions.time:1<|tool_call_argument_begin|>{{}}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        ToolFormat::Harmony => format!(
            "<|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{hard}<|call|>\
             <|start|>assistant to=functions.time<|channel|>commentary json<|message|>{{}}<|call|>"
        ),
        ToolFormat::Granite => {
            format!("<|tool_call|>[{one}, {{\"name\": \"time\", \"arguments\": {{}}}}]")
        }
        ToolFormat::CommandR7b => format!(
            "<|START_ACTION|>[\n    {{\"tool_call_id\": \"0\", \"tool_name\": \"weather\", \"parameters\": {hard}}},\n    {{\"tool_call_id\": \"1\", \"tool_name\": \"time\", \"parameters\": {{}}}}\n]<|END_ACTION|>"
        ),
        ToolFormat::Gemma4 => format!(
            "<|tool_call>call:weather{{city:<|\"|>{city}<|\"|>,days:3,o:{{a:[1,{{b:null}},<|\"|>}}<|\"|>],c:{{}}}}}}<tool_call|><|tool_call>call:time{{}}<tool_call|>"
        ),
        ToolFormat::Generic => {
            format!("{{\"tool_calls\": [{one}, {{\"name\": \"time\", \"arguments\": {{}}}}]}}")
        }
    }
}

const FORMATS: [ToolFormat; 14] = [
    ToolFormat::Hermes,
    ToolFormat::Llama3,
    ToolFormat::MistralNemo,
    ToolFormat::Mistral,
    ToolFormat::DeepSeekV3,
    ToolFormat::DeepSeekV31,
    ToolFormat::QwenCoder,
    ToolFormat::Glm45,
    ToolFormat::KimiK2,
    ToolFormat::Harmony,
    ToolFormat::Granite,
    ToolFormat::CommandR7b,
    ToolFormat::Gemma4,
    ToolFormat::Generic,
];

/// Returns the markers around reasoning and around the text before a call.
fn frame(format: ToolFormat) -> [&'static str; 4] {
    match format {
        ToolFormat::Harmony => [
            "<|channel|>analysis<|message|>",
            "<|end|>",
            "<|start|>assistant<|channel|>commentary<|message|>",
            "<|end|>",
        ],
        ToolFormat::CommandR7b => ["<|START_THINKING|>", "<|END_THINKING|>", "", ""],
        ToolFormat::Gemma4 => ["<|channel>thought\n", "<channel|>", "", ""],
        ToolFormat::Mistral | ToolFormat::MistralNemo => ["[THINK]", "[/THINK]", "", ""],
        _ => ["<think>\n", "\n</think>\n\n", "", ""],
    }
}

#[test]
fn every_format_has_reasoning_text_and_two_calls() {
    for format in FORMATS {
        let calls = [("weather", hard()), ("time", json!({}))];
        let two = two(format);
        check(format, &two, "", "", &calls);
        let [open, close, before, after] = frame(format);
        let text = if format == ToolFormat::Generic {
            ""
        } else {
            "Let me see: ä <b> {"
        };
        let answer = format!("{open}a\n b{close}{before}{text}{after}\n\n{two}\n");
        check(format, &answer, text, "a\n b", &calls);
    }
}

#[test]
fn text_without_calls_is_content() {
    for format in FORMATS {
        for text in [
            "",
            "Hello",
            " \n Hello <b> \n",
            "{\"a\": [1, 2]}",
            "{\"name\": \"Ada\", \"age\": 36}",
            "{",
            "[1]",
            "a < b",
            "<tool",
            "[TOOL",
            "<|",
            "```json\n{}\n```",
        ] {
            check(format, text, text, "", &[]);
        }
    }
}

#[test]
fn without_tools_calls_are_content() {
    for format in FORMATS {
        if format == ToolFormat::Harmony {
            continue;
        }
        let mut parser = AnswerParser::new(format, &[], Reasoning::Separate);
        let mut parsed = Parsed::default();
        parsed.add(parser.push(&two(format)));
        parsed.add(parser.finish());
        assert_eq!(parsed.content, two(format));
    }
}

#[test]
fn malformed_calls_are_content() {
    for (format, text) in [
        (ToolFormat::Hermes, "<tool_call>\nweather\n</tool_call>"),
        (
            ToolFormat::Hermes,
            "a <tool_call> {\"nam\": 1}</tool_call> b",
        ),
        (ToolFormat::Hermes, "<tool_call>{\"name\": 1}</tool_call>"),
        (ToolFormat::Hermes, "<tool_call>{\"name\""),
        (ToolFormat::Hermes, "x<tool_call>"),
        (ToolFormat::Hermes, "<tool_call>{\"arguments\": {\"a\": 1}}"),
        (ToolFormat::Llama3, "<|python_tag|>print(1)"),
        (
            ToolFormat::Llama3,
            "{\"name\": \"unknown\", \"parameters\": {}}",
        ),
        (ToolFormat::MistralNemo, "[TOOL_CALLS] none"),
        (ToolFormat::MistralNemo, "[TOOL_CALLS][]x"),
        (ToolFormat::Mistral, "[TOOL_CALLS]weather[ARGS]1"),
        (
            ToolFormat::DeepSeekV31,
            "<｜tool▁calls▁begin｜> none <｜tool▁calls▁end｜>",
        ),
        (
            ToolFormat::DeepSeekV31,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>a b<｜tool▁sep｜>{}",
        ),
        (
            ToolFormat::DeepSeekV3,
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n1",
        ),
        (ToolFormat::QwenCoder, "<tool_call>\nfunction=weather>"),
        (ToolFormat::QwenCoder, "<tool_call><function=weather"),
        (ToolFormat::Glm45, "<tool_call>use a tool\n</tool_call>"),
        (ToolFormat::KimiK2, "<|tool_calls_section_begin|>x"),
        (
            ToolFormat::KimiK2,
            "<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>x",
        ),
        (
            ToolFormat::Harmony,
            "<|channel|>commentary to=functions.weather",
        ),
        (
            ToolFormat::Harmony,
            "<|channel|>commentary to=functions.weather<|message|>x",
        ),
        (ToolFormat::Granite, "<|tool_call|>{}"),
        (
            ToolFormat::CommandR7b,
            "<|START_ACTION|>[{\"parameters\": {}}]",
        ),
        (ToolFormat::Gemma4, "<|tool_call>weather{}"),
        (ToolFormat::Generic, "{\"tool_calls\": []}"),
        (
            ToolFormat::Generic,
            "{\"tool_calls\": [{\"name\": \"unknown\"}]}",
        ),
        (ToolFormat::Generic, "{\"response\": "),
        (ToolFormat::Generic, "{\"answer\": \"x\"}"),
    ] {
        check(format, text, text, "", &[]);
    }
    let long = format!("<tool_call>\n<function={}>", "x".repeat(600));
    check(ToolFormat::QwenCoder, &long, &long, "", &[]);
    let long = format!("<|channel|>{}<|message|>", "x".repeat(600));
    check(ToolFormat::Harmony, &long, &long, "", &[]);
}

#[test]
fn the_rest_of_a_broken_call_is_content() {
    let calls = [("time", json!({}))];
    let text = "<tool_call>{\"name\": \"time\", \"arguments\": {}} or else";
    check(ToolFormat::Hermes, text, " or else", "", &calls);
    let text = "<tool_call>{\"name\": \"time\", \"arguments\": {}}}\n</tool_call>.";
    check(ToolFormat::Hermes, text, ".", "", &calls);
    let text = "[TOOL_CALLS][{\"name\": \"time\"}, {\"x\"}]";
    check(ToolFormat::MistralNemo, text, ", {\"x\"}]", "", &calls);
    let text = "<tool_call><function=time>\n<parameter=a>1</parameter> or else";
    check(
        ToolFormat::QwenCoder,
        text,
        "or else",
        "",
        &[("time", json!({"a": 1}))],
    );
    let text = "<tool_call>time\n<arg_key>a</arg_key>x";
    check(ToolFormat::Glm45, text, "<arg_key>a</arg_key>x", "", &calls);
    let text = "{\"response\": \"a\"} b";
    check(ToolFormat::Generic, text, "a b", "", &[]);
    // Arguments that are out stay; the rest is content.
    let parsed = parse(ToolFormat::Mistral, "[TOOL_CALLS]time[ARGS]{\"a\": oops}");
    assert_eq!(parsed.calls, [("time".to_owned(), "{\"a\": ".to_owned())]);
    assert_eq!(parsed.content, "oops}");
}

#[test]
fn cut_answers_keep_their_parts() {
    let cut = |format, text: &str| {
        let parsed = parse(format, text);
        assert_eq!(parsed.content, "", "{text}");
        let [(name, arguments)] = &parsed.calls[..] else {
            panic!("{parsed:?}");
        };
        assert_eq!(name, "weather");
        arguments.clone()
    };
    let hermes = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zü";
    assert_eq!(cut(ToolFormat::Hermes, hermes), "{\"city\": \"Zü");
    let closed = "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Zü\"}}\n</tool";
    assert_eq!(cut(ToolFormat::Hermes, closed), "{\"city\": \"Zü\"}");
    let qwen = "<tool_call><function=weather><parameter=days>3</parameter><parameter=city>\nZü";
    assert_eq!(
        cut(ToolFormat::QwenCoder, qwen),
        "{\"days\":3,\"city\":\"Zü"
    );
    let gemma = "<|tool_call>call:weather{days:3,city:<|\"|>Zü";
    assert_eq!(cut(ToolFormat::Gemma4, gemma), "{\"days\":3,\"city\":\"Zü");
    check(ToolFormat::Hermes, "<think>a", "", "a", &[]);
    check(ToolFormat::Hermes, "<thi", "<thi", "", &[]);
    check(ToolFormat::Hermes, "<think>a</thi", "", "a</thi", &[]);
    check(
        ToolFormat::Generic,
        "{\"response\": \"a\\u00e4\\n",
        "aä\n",
        "",
        &[],
    );
}

#[test]
fn variants_of_calls_are_known() {
    let weather = [("weather", json!({"city": "a"}))];
    let call = |format, text: &str| check(format, text, "", "", &weather);
    call(
        ToolFormat::Llama3,
        "{\"name\": \"weather\", \"parameters\": {\"city\": \"a\"}}",
    );
    call(
        ToolFormat::Llama3,
        " {\"type\": \"function\", \"name\": \"weather\", \"parameters\": {\"city\": \"a\"}}",
    );
    call(
        ToolFormat::Hermes,
        "<tool_call>{\"name\": \"weather\", \"arguments\": \"{\\\"city\\\": \\\"a\\\"}\"}</tool_call>",
    );
    call(
        ToolFormat::Hermes,
        "<tool_call>[{\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}}]</tool_call>",
    );
    call(ToolFormat::Mistral, "[TOOL_CALLS]weather{\"city\": \"a\"}");
    call(
        ToolFormat::Mistral,
        "[TOOL_CALLS][{\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}}]",
    );
    call(
        ToolFormat::QwenCoder,
        "<function=weather>\n<parameter=city>\na\n</parameter>\n</function>\n</tool_call>",
    );
    call(
        ToolFormat::QwenCoder,
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}}</tool_call>",
    );
    call(
        ToolFormat::Generic,
        "{\"tool_call\": {\"name\": \"weather\", \"arguments\": {\"city\": \"a\"}}}",
    );
    call(
        ToolFormat::Harmony,
        " to=functions.weather<|channel|>commentary<|message|>{\"city\": \"a\"}<|call|>",
    );
    // A line end in a string is escaped.
    let text =
        "<tool_call>{\"name\": \"weather\", \"arguments\": {\"city\": \"a\nb\"}}</tool_call>";
    check(
        ToolFormat::Hermes,
        text,
        "",
        "",
        &[("weather", json!({"city": "a\nb"}))],
    );
    let kimi = parse(ToolFormat::KimiK2, &two(ToolFormat::KimiK2));
    let ids: Vec<Option<&str>> = kimi.ids.iter().map(Option::as_deref).collect();
    assert_eq!(ids, [Some("functions.weather:0"), Some("functions.time:1")]);
    // Deltas arrive before the call is complete.
    let mut parser = AnswerParser::new(ToolFormat::Hermes, &tools(), Reasoning::Separate);
    let deltas = parser.push("Hi <tool_call>{\"name\": \"time\", \"arguments\": {\"a");
    assert_eq!(
        deltas,
        [
            Delta::Content("Hi".to_owned()),
            Delta::CallName {
                index: 0,
                name: "time".to_owned(),
                id: None
            },
            Delta::CallArguments {
                index: 0,
                text: "{\"a".to_owned()
            },
        ]
    );
}

#[test]
fn a_response_is_decoded() {
    let text = json!({"response": "a \"b\" \\ \n é 😀 \u{1}"}).to_string();
    check(
        ToolFormat::Generic,
        &text,
        "a \"b\" \\ \n é 😀 \u{1}",
        "",
        &[],
    );
    let text = "{\"response\": \"\\ud83d\\ude00\\u00e4\\ud83dx\\/\"}";
    check(ToolFormat::Generic, text, "😀ä\u{fffd}x/", "", &[]);
    check(
        ToolFormat::Generic,
        "{\"response\": {\"a\": 1}}",
        "{\"a\": 1}",
        "",
        &[],
    );
    check(ToolFormat::Generic, "{\"response\": 12 }", "12", "", &[]);
}

#[test]
fn reasoning_is_where_the_caller_wants_it() {
    let parse = |reasoning, text| {
        let parsed = parse_parts(ToolFormat::Hermes, reasoning, text, std::iter::repeat(1));
        (parsed.reasoning, parsed.content)
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    let text = "<think>\na\n</think>\n\nb </think>";
    assert_eq!(parse(Reasoning::Separate, text), pair("a", "b </think>"));
    assert_eq!(parse(Reasoning::Open, text), pair("a", "b </think>"));
    assert_eq!(parse(Reasoning::InContent, text), pair("", text));
    assert_eq!(parse(Reasoning::Open, "\na\n</think>b"), pair("a", "b"));
    assert_eq!(
        parse(Reasoning::Separate, "b <think>a</think>"),
        pair("", "b <think>a</think>")
    );
    let after = Reasoning::after_prompt;
    assert_eq!(
        after(ToolFormat::Hermes, "<|im_start|>assistant\n<think>\n"),
        Reasoning::Open
    );
    assert_eq!(
        after(ToolFormat::Hermes, "<think>\n\n</think>\n\n"),
        Reasoning::Separate
    );
    assert_eq!(
        after(ToolFormat::Gemma4, "<|channel>thought\n<channel|>"),
        Reasoning::Separate
    );
}

#[test]
fn harmony_messages_have_channels() {
    let text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi <b>!<|return|>";
    check(ToolFormat::Harmony, text, "Hi <b>!", "hm", &[]);
    let text = "<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>analysis<|message|>b<|end|>\
                <|start|>assistant<|channel|>final <|constrain|>json<|message|>{\"x\": 1}";
    check(ToolFormat::Harmony, text, "{\"x\": 1}", "ab", &[]);
    check(ToolFormat::Harmony, "plain", "plain", "", &[]);
}

#[test]
fn long_answers_take_linear_time() {
    for text in [
        "<tool_call>",
        "<tool_call>{\"",
        "<",
        "{\"name\":",
        "<tool_call><function=f><parameter=a>",
        " ",
    ] {
        for format in [
            ToolFormat::Hermes,
            ToolFormat::QwenCoder,
            ToolFormat::Generic,
        ] {
            let text = text.repeat((1 << 18) / text.len());
            let start = std::time::Instant::now();
            let whole = parse_parts(format, Reasoning::Separate, &text, std::iter::empty());
            let parts = parse_parts(format, Reasoning::Separate, &text, std::iter::repeat(7));
            assert_eq!(whole, parts);
            let took = start.elapsed().as_secs();
            assert!(took < 20, "{format:?}, {:?}: {took} s", text.get(..8));
        }
    }
}

/// Returns texts of markers, calls and other text.
fn answer(format: ToolFormat) -> impl Strategy<Value = String> {
    let two = two(format);
    let pieces: Vec<String> = {
        let ends: Vec<usize> = two.char_indices().map(|(i, _)| i).collect();
        let middle = ends[ends.len() / 2];
        let mut out = vec![
            two.clone(),
            two[..middle].to_owned(),
            two[middle..].to_owned(),
        ];
        out.extend(frame(format).map(str::to_owned));
        out.extend(
            [
                "\n",
                " ",
                "ä",
                "{",
                "}",
                "\"",
                "]",
                ";",
                "<",
                "text",
                "{\"name\": \"time\"}",
                "</tool_call>",
            ]
            .map(str::to_owned),
        );
        out.extend(
            two.split_inclusive(['>', '｜', ']', '{'])
                .map(str::to_owned),
        );
        out
    };
    prop::collection::vec(prop::sample::select(pieces), 0..9).prop_map(|all| all.concat())
}

fn answers() -> impl Strategy<Value = (ToolFormat, String)> {
    prop::sample::select(FORMATS.to_vec())
        .prop_flat_map(|format| answer(format).prop_map(move |text| (format, text)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_parts_of_an_answer_do_not_matter(
        (format, text) in answers(),
        reasoning in prop::sample::select(vec![Reasoning::InContent, Reasoning::Separate, Reasoning::Open]),
        lengths in prop::collection::vec(1usize..12, 0..64),
    ) {
        let whole = parse_parts(format, reasoning, &text, std::iter::empty());
        let parts = parse_parts(format, reasoning, &text, lengths.into_iter().cycle());
        prop_assert_eq!(whole, parts);
    }

    #[test]
    fn text_without_markers_stays(text in "[a-zäé{}\\[\\]\":,. \n<>]{0,40}") {
        for format in FORMATS {
            let parsed = parse(format, &text);
            if parsed.calls.is_empty() {
                prop_assert_eq!(&parsed.content, &text);
            }
        }
    }
}

/// Returns the grammar that forces calls, with some markers as special tokens.
fn grammar(format: ToolFormat, choice: &ToolChoice, special: bool) -> Option<String> {
    let id = |marker: &str| (special && marker.starts_with('<')).then_some(7);
    format.grammar(&tools(), choice, true, Reasoning::Separate, &id)
}

#[test]
fn grammars_force_calls() {
    for format in FORMATS {
        let auto = grammar(format, &ToolChoice::Auto, false);
        assert_eq!(auto.is_some(), format == ToolFormat::Generic);
        let required = grammar(format, &ToolChoice::Required, false).unwrap();
        assert!(required.starts_with("start: "), "{required}");
        assert!(
            required.contains("weather") && required.contains("time"),
            "{required}"
        );
        assert!(!required.contains("<["), "{required}");
        let named = grammar(format, &ToolChoice::Named("time".to_owned()), true).unwrap();
        assert!(!named.contains("weather"), "{named}");
        let has_tokens = !matches!(format, ToolFormat::Mistral | ToolFormat::MistralNemo);
        assert_eq!(named.contains("<[7]>"), has_tokens, "{named}");
        assert_eq!(
            grammar(format, &ToolChoice::Named("x".to_owned()), true),
            None
        );
        // Each rule that a rule names is there.
        for word in required.split(|c: char| !c.is_ascii_alphanumeric()) {
            let number = word.strip_prefix('r').and_then(|n| n.parse::<usize>().ok());
            let rule = number.map(|n| format!("\nr{n}"));
            assert!(
                rule.is_none_or(|r| required.contains(&r)),
                "{word}: {required}"
            );
        }
    }
    let answer = grammar(ToolFormat::Generic, &ToolChoice::Auto, false).unwrap();
    assert!(answer.contains("response"));
}

#[test]
fn templates_have_formats() {
    // Each template writes a call as its format does.
    for (template, format) in [
        (
            "{{ tools }}<tool_call>{{ call | tojson }}</tool_call>",
            ToolFormat::Hermes,
        ),
        ("{{ tools }}<|start_header_id|>ipython", ToolFormat::Llama3),
        ("{{ tools }}<|python_tag|>", ToolFormat::Llama3),
        (
            "{{ tools }}[TOOL_CALLS] [{{ calls }}]",
            ToolFormat::MistralNemo,
        ),
        (
            "{{ tools }}[TOOL_CALLS]{{ name }}[ARGS]{{ arguments }}",
            ToolFormat::Mistral,
        ),
        (
            "{{ tools }}<｜tool▁calls▁begin｜>```json",
            ToolFormat::DeepSeekV3,
        ),
        (
            "{{ tools }}<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
            ToolFormat::DeepSeekV31,
        ),
        (
            "{{ tools }}<tool_call><function={{ name }}><parameter={{ x }}>",
            ToolFormat::QwenCoder,
        ),
        (
            "{{ tools }}<tool_call>{{ name }}<arg_key>x</arg_key><arg_value>",
            ToolFormat::Glm45,
        ),
        (
            "{{ tools }}<|tool_calls_section_begin|><|tool_call_begin|>",
            ToolFormat::KimiK2,
        ),
        (
            "{{ tools }}<|channel|>commentary to=functions.{{ name }}",
            ToolFormat::Harmony,
        ),
        (
            "{{ tools }}<|tool_call|>{{ calls | tojson }}",
            ToolFormat::Granite,
        ),
        ("{{ tools }}<|START_ACTION|>", ToolFormat::CommandR7b),
        (
            "{{ tools }}<|tool_call>call:{{ name }}<tool_call|>",
            ToolFormat::Gemma4,
        ),
        ("{{ tools }}<unknown>", ToolFormat::Generic),
        ("<｜tool▁calls▁begin｜>```json", ToolFormat::Generic),
        ("", ToolFormat::Generic),
    ] {
        assert_eq!(ToolFormat::of_template(template), format, "{template}");
    }
}
