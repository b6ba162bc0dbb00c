//! Chat requests rendered to prompts.

use serde_json::{Map, Value, json};

use super::{open, vocabularies};
use crate::{ChatRequest, ChatTemplate, Ending, ToolFormat};
use tpc_gguf::GgufFile;

const TURNS: &str = "{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";

/// A template with calls; `%s` is the expression of a call's arguments.
const CALLS: &str = "{% if tools %}{{ tools | tojson }}{% endif %}<tool_call>{% for m in messages %}[{{ m.role }}]\
    {%- if m.content is not none %}{{ m.content }}{% endif %}\
    {%- for c in m.tool_calls or [] %}({{ c.function.name }}:{{ %s }}){% endfor %}{% endfor %}\
    {%- if add_generation_prompt %}[assistant]{% endif %}";

struct Asked {
    tools: Vec<Value>,
    ending: Ending,
    variables: Map<String, Value>,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked {
            tools: Vec::new(),
            ending: Ending::Answer,
            variables: Map::new(),
        }
    }
}

impl Asked {
    fn render(&self, source: &str, messages: &[Value]) -> Result<String, String> {
        let template = ChatTemplate::new("file", source).map_err(|d| d.to_string())?;
        let request = ChatRequest {
            messages,
            tools: &self.tools,
            ending: self.ending,
            now: None,
            variables: &self.variables,
        };
        let prompt = template.render_request(&super::chat::tokenizer(), &request);
        prompt.map(|p| p.text).map_err(|d| d.to_string())
    }
}

fn render(source: &str, messages: &[Value]) -> Result<String, String> {
    Asked::default().render(source, messages)
}

fn tool() -> Value {
    json!({"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object",
        "properties": {"b": {"type": "integer"}, "a": {"type": "integer"}}}}})
}

fn call(arguments: &Value) -> Value {
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
        "function": {"name": "add", "arguments": arguments}}]})
}

#[test]
fn content_may_be_text_or_parts() {
    let messages = [
        json!({"role": "system", "content": "Be short.", "name": null}),
        json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
    ];
    assert_eq!(
        render(TURNS, &messages).unwrap(),
        "[system]Be short.[user]a\nb[assistant]"
    );
    let parts = "{% for m in messages %}[{{ m.role }}]{% for p in m.content %}{{ p.text or raise_exception('parts') }}{% endfor %}{% endfor %}";
    assert_eq!(
        render(parts, &messages).unwrap(),
        "[system]Be short.[user]a\nb"
    );
}

#[test]
fn invalid_messages_are_named() {
    let e = |m: Value| render(TURNS, &[json!({"role": "user", "content": "x"}), m]).unwrap_err();
    let image =
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]});
    assert_eq!(
        e(image),
        "messages[1].content[0]: the part has the type \"image_url\"; tpc supports text only"
    );
    assert_eq!(
        e(json!({"content": "x"})),
        "messages[1].role: the field is missing; tpc expects a string"
    );
    let cases = [
        (json!("x"), "messages[1]:"),
        (json!({"role": 1}), "messages[1].role:"),
        (json!({"role": "user"}), "messages[1].content:"),
        (
            json!({"role": "user", "content": null}),
            "messages[1].content:",
        ),
        (
            json!({"role": "user", "content": 3}),
            "messages[1].content:",
        ),
        (
            json!({"role": "user", "content": ["x"]}),
            "messages[1].content[0].type:",
        ),
        (
            json!({"role": "user", "content": [{"type": "text"}]}),
            "messages[1].content[0].text:",
        ),
        (
            json!({"role": "user", "content": "x", "name": 1}),
            "messages[1].name:",
        ),
        (
            json!({"role": "assistant", "tool_calls": {}}),
            "messages[1].tool_calls:",
        ),
        (
            json!({"role": "assistant", "tool_calls": [1]}),
            "messages[1].tool_calls[0].function:",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"function": {}}]}),
            "messages[1].tool_calls[0].function.name:",
        ),
        (
            json!({"role": "assistant", "tool_calls": [{"id": 1, "function": {"name": "f"}}]}),
            "messages[1].tool_calls[0].id:",
        ),
        (
            call(&json!("{\"a\":")),
            "messages[1].tool_calls[0].function.arguments:",
        ),
        (
            call(&json!([1])),
            "messages[1].tool_calls[0].function.arguments:",
        ),
    ];
    for (message, field) in cases {
        let text = e(message);
        assert!(text.starts_with(field), "{field}: {text}");
    }
    assert!(render(TURNS, &[]).unwrap_err().starts_with("messages:"));
}

#[test]
fn invalid_tools_are_named() {
    let e = |tool: Value| {
        let asked = Asked {
            tools: vec![tool],
            ..Asked::default()
        };
        asked
            .render(TURNS, &[json!({"role": "user", "content": "x"})])
            .unwrap_err()
    };
    assert!(e(json!({"type": "retrieval"})).starts_with("tools[0].type:"));
    assert!(e(json!({"type": "function"})).starts_with("tools[0].function.name:"));
    let tool = json!({"type": "function", "function": {"name": "f", "parameters": 1}});
    assert!(e(tool).starts_with("tools[0].function.parameters:"));
}

#[test]
fn arguments_have_the_type_that_the_template_reads() {
    let messages = [
        json!({"role": "user", "content": "x"}),
        call(&json!("{\"b\":1, \"a\":2}")),
    ];
    let with = |expression: &str| render(&CALLS.replace("%s", expression), &messages).unwrap();
    // Objects keep the order of their keys.
    assert_eq!(
        with("c.function.arguments | tojson"),
        "<tool_call>[user]x[assistant](add:{\"b\": 1, \"a\": 2})[assistant]"
    );
    // Concatenated texts keep their spaces.
    assert_eq!(
        with("'' + c.function.arguments"),
        "<tool_call>[user]x[assistant](add:{\"b\":1, \"a\":2})[assistant]"
    );
    assert_eq!(
        with("c.function.arguments.items() | list | length"),
        "<tool_call>[user]x[assistant](add:2)[assistant]"
    );
}

#[test]
fn null_content_reaches_templates_that_support_it() {
    let messages = [
        json!({"role": "user", "content": "x"}),
        call(&json!({"a": 1})),
    ];
    let reads_null = "{{ tools }}<tool_call>{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.arguments | tojson }}\
                      {% else %}{{ m.content }}{% endif %}{% endfor %}";
    assert!(
        render(reads_null, &messages)
            .unwrap()
            .ends_with("x{\"a\": 1}")
    );
    let needs_text = "{{ tools }}<tool_call>{% for m in messages %}{{ m.content + '.' }}{% for c in m.tool_calls or [] %}{{ c.function.name + (c.function.arguments | tojson) }}\
                      {% endfor %}{% endfor %}";
    assert!(
        render(needs_text, &messages)
            .unwrap()
            .ends_with("x..add{\"a\": 1}")
    );
}

#[test]
fn fields_reach_the_template() {
    let template = "{% for m in messages %}{{ m.role }};{{ m.reasoning_content or '-' }};{{ m.name or '-' }};{{ 'tool_calls' in m }}|{% endfor %}{{ level }}{{ tools }}<tool_call>";
    let asked = Asked {
        variables: json!({"level": 3, "tools": "no"})
            .as_object()
            .unwrap()
            .clone(),
        ..Asked::default()
    };
    let messages = [
        json!({"role": "developer", "content": "x"}),
        json!({"role": "user", "content": "x", "tool_calls": []}),
        json!({"role": "assistant", "content": "x", "reasoning_content": "r", "tool_calls": null}),
        call(&json!({})),
        json!({"role": "tool", "content": "x", "tool_call_id": "c1"}),
        json!({"role": "user", "content": "x"}),
    ];
    assert_eq!(
        asked.render(template, &messages).unwrap(),
        "system;-;-;False|user;-;-;False|assistant;r;-;False|assistant;-;-;True|tool;-;add;False|user;-;-;False|3None<tool_call>"
    );
}

#[test]
fn a_template_without_tools_gets_them_as_text() {
    let asked = Asked {
        tools: vec![tool()],
        ..Asked::default()
    };
    let result = |text: &str| json!({"role": "tool", "tool_call_id": "c1", "content": text});
    let messages = [
        json!({"role": "user", "content": "1+2?"}),
        call(&json!("{\"b\": 1, \"a\": 2}")),
        result("3"),
        result("4"),
    ];
    let text = asked.render(TURNS, &messages).unwrap();
    let (system, rest) = text.split_once("[user]").unwrap();
    assert!(system.starts_with("[system]"));
    assert!(system.contains(&tool()["function"].to_string()), "{system}");
    assert_eq!(
        rest,
        "1+2?[assistant]{\"tool_calls\":[{\"name\":\"add\",\"arguments\":{\"b\":1,\"a\":2}}]}\
         [user]{\"tool_response\":{\"tool\":\"add\",\"content\":\"3\"}}\n{\"tool_response\":{\"tool\":\"add\",\"content\":\"4\"}}[assistant]"
    );
    let with_system = [
        json!({"role": "system", "content": "Be short."}),
        json!({"role": "user", "content": "x"}),
    ];
    let text = asked.render(TURNS, &with_system).unwrap();
    assert!(
        text.starts_with("[system]Be short.\n\nYou can call"),
        "{text}"
    );
}

#[test]
fn an_unfinished_answer_is_continued() {
    let source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
    let talk = |answer: &str| {
        [
            json!({"role": "user", "content": "e"}),
            json!({"role": "assistant", "content": answer}),
        ]
    };
    for answer in ["e", "", "The answer is ", "<|end|>", "ä\n"] {
        let expected = format!("<|user|>e<|end|><|assistant|>{answer}");
        assert_eq!(render(source, &talk(answer)).unwrap(), expected);
    }
    let complete = Asked {
        ending: Ending::Message,
        ..Asked::default()
    };
    assert_eq!(
        complete.render(source, &talk("e ")).unwrap(),
        "<|user|>e<|end|><|assistant|>e<|end|>"
    );
    let parts = "{% for m in messages %}<|{{ m.role }}|>{% for p in m.content %}{{ p.text or raise_exception('parts') }}{% endfor %}<|end|>{% endfor %}";
    assert_eq!(
        render(parts, &talk("The ")).unwrap(),
        "<|user|>e<|end|><|assistant|>The "
    );
    let changes = "{% for m in messages %}{{ m.content | upper }}{% endfor %}";
    let e = render(changes, &talk("e")).unwrap_err();
    assert!(
        e.starts_with("messages[1].content: the chat template changes"),
        "{e}"
    );
}

#[test]
fn templates_of_published_vocabularies_render_requests() {
    for path in vocabularies() {
        let file = GgufFile::open(&path).unwrap();
        let template = ChatTemplate::from_gguf(&file, None).unwrap();
        let name = path.to_string_lossy();
        let format = match name.contains("gemma-4") {
            true => ToolFormat::Gemma4,
            false => ToolFormat::Generic,
        };
        assert_eq!(template.tool_format(), format, "{name}");
        let messages = [
            json!({"role": "user", "content": "1+2?"}),
            call(&json!("{\"b\": 1, \"a\": 2}")),
            json!({"role": "tool", "tool_call_id": "c1", "content": "three"}),
        ];
        let (tools, variables) = ([tool()], Map::new());
        let request = ChatRequest {
            messages: &messages,
            tools: &tools,
            ending: Ending::Answer,
            now: None,
            variables: &variables,
        };
        let prompt = template.render_request(&open(&path), &request).unwrap();
        let call = match format {
            ToolFormat::Gemma4 => "<|tool_call>call:add{a:2,b:1}<tool_call|>",
            _ => "{\"tool_calls\":[{\"name\":\"add\",\"arguments\":{\"b\":1,\"a\":2}}]}",
        };
        for text in ["Adds.", "1+2?", call, "three"] {
            assert!(
                prompt.text.contains(text),
                "{name}: {text}: {}",
                prompt.text
            );
        }
    }
}
