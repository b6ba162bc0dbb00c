//! Conversations rendered to prompts.

use std::time::{Duration, SystemTime};

use super::{open, vocabularies};
use crate::{ChatTemplate, Conversation, Ending, Message, Tokenizer};
use tpc_gguf::{GgufFile, MetaValue, Metadata, StrList};

pub(super) fn tokenizer() -> Tokenizer {
    let tokens: StrList = ["<unk>", "<s>", "</s>", "a"].into_iter().collect();
    let pairs = [
        ("tokenizer.ggml.model", MetaValue::from("llama")),
        ("tokenizer.ggml.tokens", tokens.into()),
    ];
    let pairs = pairs.map(|(k, v)| (k.to_owned(), v));
    Tokenizer::from_metadata(&Metadata::from_pairs("small", pairs).unwrap()).unwrap()
}

fn talk() -> Vec<Message> {
    [
        ("system", "Be short."),
        ("user", "Hello <b>"),
        ("assistant", " Hi! "),
        ("user", "What is 2+2?"),
    ]
    .map(|(role, content)| Message::new(role, content))
    .to_vec()
}

fn conversation(messages: &[Message]) -> Conversation<'_> {
    Conversation {
        messages,
        ending: Ending::Answer,
        now: None,
        switches: &[],
    }
}

fn render(source: &str, messages: &[Message]) -> Result<String, String> {
    let template = ChatTemplate::new("file", source).map_err(|d| d.to_string())?;
    let prompt = template.render(&tokenizer(), &conversation(messages));
    prompt.map(|p| p.text).map_err(|d| d.to_string())
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let mut messages = talk();
    messages[0].role = "user".to_owned();
    assert_eq!(render(source, &messages).unwrap(), expected);
}

#[test]
fn templates_of_published_vocabularies_render() {
    let mut rendered = 0;
    for path in vocabularies() {
        let file = GgufFile::open(&path).unwrap();
        let tokenizer = open(&path);
        let template = ChatTemplate::from_gguf(&file, None).unwrap();
        let messages = talk();
        let prompt = template
            .render(&tokenizer, &conversation(&messages))
            .unwrap();
        let own = template.notes().is_empty();
        rendered += usize::from(own);
        for m in &messages {
            assert!(
                prompt.text.contains(m.content.trim()),
                "{}: {}",
                path.display(),
                prompt.text
            );
        }
        let ids = tokenizer.encode_prompt(&prompt.text);
        let bos = tokenizer.special().bos.filter(|b| ids[0] == *b);
        assert!(
            bos.is_none() || ids[1..].iter().all(|id| Some(*id) != bos),
            "{ids:?}"
        );
        if path.to_string_lossy().contains("phi-3") {
            let expected = "<s><|user|>\nBe short.\nHello <b><|end|>\n<|assistant|>\n Hi! <|end|>\n<|user|>\nWhat is 2+2?<|end|>\n\
                            <|assistant|>\n";
            assert_eq!(prompt.text, expected);
            assert_eq!(prompt.notes.len(), 1);
        }
    }
    assert!(rendered >= 1);
}

#[test]
fn a_file_without_a_template_speaks_chatml() {
    let metadata = Metadata::from_pairs("file", []).unwrap();
    let template = ChatTemplate::from_metadata(&metadata, None).unwrap();
    assert_eq!(template.notes()[0].code.id, "TPC0568");
    let prompt = template
        .render(&tokenizer(), &conversation(&talk()[2..]))
        .unwrap();
    let expected = "<|im_start|>assistant\n Hi! <|im_end|>\n<|im_start|>user\nWhat is 2+2?<|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(prompt.text, expected);
}

#[test]
fn what_python_has_templates_have() {
    check(
        "{{ messages[0].content.split(' ')[-1].upper() }}|{{ 'abc'.removeprefix('a') }}",
        "SHORT.|bc",
    );
    check(
        "{{ messages[::-1][0]['content'] }}{{ messages[1:][0].role }}",
        "What is 2+2?user",
    );
    check(
        "{{ messages[1] | tojson }}",
        r#"{"role": "user", "content": "Hello <b>"}"#,
    );
    check(
        "{% for m in messages %}{% if loop.index0 == 1 %}{% continue %}{% endif %}{{ m.role[0] }}{% if loop.index0 == 2 %}{% break %}{% endif %}{% endfor %}Be short.",
        "uaBe short.",
    );
    check(
        "{% set ns = namespace(n=0) %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }} Be short.",
        "4 Be short.",
    );
    check(
        "{%- for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}",
        "role=user;content=Be short.;",
    );
    check(
        "{{ messages | map(attribute='role') | list | length }}{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first }}{{ messages[0].content | trim }}",
        "4Be short.Be short.",
    );
    check(
        "{% generation %}{{ messages[0].content }}{% endgeneration %}",
        "Be short.",
    );
    check(
        "{{ bos_token }}{{ eos_token }}{% if tools is not none and tools %}x{% endif %}{{ messages[0].get('x', 'y') }}Be short.",
        "<s></s>yBe short.",
    );
    check(
        "{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(messages[0].content) }}{{ enable_thinking is defined }}",
        "[Be short.]False",
    );
    check(
        "  {% if true %}\n  x\n  {% endif %}\nBe short.",
        "  x\nBe short.",
    );
    check(
        "{{ 'Be short.' ~ (1 if messages[0]['tool_calls'] else 2) ~ (messages[0].tool_calls is defined) }}",
        "Be short.2False",
    );
    check(
        "{{ messages[0].content.startswith('Be') and 'short' in messages[0].content }}{{ messages[0].content.rstrip('.') }}.",
        "TrueBe short.",
    );
}

#[test]
fn switches_and_the_time_are_the_callers() {
    let template = ChatTemplate::new("file", "{{ enable_thinking }} {% if strftime_now is defined %}{{ strftime_now('%d %b %Y') }}{% endif %}").unwrap();
    let switches = [("enable_thinking".to_owned(), true)];
    let messages = [Message::new("user", "x")];
    let asked = Conversation {
        switches: &switches,
        now: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1_721_995_200)),
        ..conversation(&messages)
    };
    assert_eq!(
        template.render(&tokenizer(), &asked).unwrap().text,
        "True 26 Jul 2024"
    );
    let asked = conversation(&messages);
    assert_eq!(template.render(&tokenizer(), &asked).unwrap().text, " ");
}

#[test]
fn a_template_that_refuses_system_messages_gets_none() {
    let source = "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}\
                  {% for m in messages %}{{ m.role }}:{{ m.content }};{% endfor %}";
    let expected = "user:Be short.\nHello <b>;assistant: Hi! ;user:What is 2+2?;";
    assert_eq!(render(source, &talk()).unwrap(), expected);
    let alone = [Message::new("system", "x")];
    let e = render(source, &alone).unwrap_err();
    assert_eq!(
        e,
        "file: the chat template, line 1, refuses the conversation: System role not supported"
    );
}

#[test]
fn failures_name_their_line() {
    let e = |source: &str| render(source, &talk()[1..]).unwrap_err();
    assert!(
        e("a\n{% for %}").contains("line 2, is not valid Jinja"),
        "{}",
        e("a\n{% for %}")
    );
    assert!(e("a\nb\n{{ messages.x.y }}").contains("line 3, fails"));
    assert!(
        e("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}")
            .contains("too many steps")
    );
    let long = "{% for i in range(100000) %}{{ 'x' * 9999 }}{% endfor %}";
    assert!(e(long).contains("fails"), "{}", e(long));
    assert!(e("{{ messages | tojson(indent='x') }}").contains("indent"));
    assert!(e("{% include 'other' %}").contains("line 1"));
    assert!(e(&"{{ (".repeat(10_000)).contains("Jinja"));
    assert!(e(&"{% if 1 %}".repeat(10_000)).contains("Jinja"));
    assert!(e(&"x".repeat(5 << 20)).contains("bytes"));
}

#[test]
fn templates_have_names() {
    let pairs = [
        ("tokenizer.chat_template", "{{ 1 }}"),
        ("tokenizer.chat_template.tool_use", "{{ 2 }}"),
    ];
    let pairs = pairs.map(|(k, v)| (k.to_owned(), MetaValue::from(v)));
    let metadata = Metadata::from_pairs("file", pairs).unwrap();
    let messages = [Message::new("user", "x")];
    let of = |name| {
        let template = ChatTemplate::from_metadata(&metadata, name)?;
        template
            .render(&tokenizer(), &conversation(&messages))
            .map(|p| p.text)
    };
    assert_eq!(
        (
            of(None).unwrap().as_str(),
            of(Some("tool_use")).unwrap().as_str()
        ),
        ("1", "2")
    );
    let e = of(Some("tool_usa")).unwrap_err();
    assert!(
        e.help
            .unwrap()
            .to_string()
            .contains("did you mean tool_use?")
    );
}

/// Checks idioms of published templates.
#[test]
fn idioms_of_published_templates_render() {
    // Reasoning is removed from earlier answers (Qwen 3).
    let reasoning = "{%- set ns = namespace(multi=true, last=messages|length - 1) %}\n\
        {%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n\
        {%- if ns.multi and message.role == \"user\" and message.content is string and not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}\n\
        {%- set ns.multi = false %}\n{%- set ns.last = index %}\n{%- endif %}\n{%- endfor %}\n\
        {%- for message in messages %}\n{%- if message.content is string %}{%- set content = message.content %}{%- else %}{%- set content = '' %}{%- endif %}\n\
        {%- if message.role == \"assistant\" %}\n{%- set reasoning_content = '' %}\n\
        {%- if '</think>' in content %}\n{%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}\n\
        {%- set content = content.split('</think>')[-1].lstrip('\\n') %}\n{%- endif %}\n\
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and reasoning_content)) %}{{- '<think>' + reasoning_content.strip('\\n') }}{%- endif %}\n\
        {{- '[A]' + content }}\n{%- else %}{{- '[' + message.role[0]|upper + ']' + content }}{%- endif %}\n{%- endfor %}\n\
        {%- if add_generation_prompt %}\n{{- '[A]' }}\n{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think></think>' }}{%- endif %}\n{%- endif %}";
    let messages = [
        Message::new("system", "Be short."),
        Message::new("user", "Q"),
        Message::new("assistant", "<think>\nhm\n</think>\n\nR"),
        Message::new("user", "P"),
    ];
    assert_eq!(
        render(reasoning, &messages).unwrap(),
        "[S]Be short.[U]Q[A]R[U]P[A]"
    );
    // The system text is extracted, and turns alternate (Mistral, Gemma).
    let turns = "{%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}{%- set loop_messages = messages[1:] %}\
        {%- else %}{%- set loop_messages = messages %}{%- endif %}\
        {{- bos_token }}{%- for message in loop_messages %}\
        {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{- raise_exception('roles must alternate') }}{%- endif %}\
        {%- if message.role == 'user' %}{%- if loop.first and system is defined %}{{- '[INST] ' + system + '\\n\\n' + message.content | trim + '[/INST]' }}\
        {%- else %}{{- '[INST] ' ~ message.content ~ '[/INST]' }}{%- endif %}{%- elif message.role in ['assistant', 'model'] %}{{- ' ' + message.content|trim + eos_token }}{%- endif %}{%- endfor %}";
    let expected = "<s>[INST] Be short.\n\nHello <b>[/INST] Hi!</s>[INST] What is 2+2?[/INST]";
    assert_eq!(render(turns, &talk()).unwrap(), expected);
    let twice = [Message::new("user", "a"), Message::new("user", "b")];
    assert!(
        render(turns, &twice)
            .unwrap_err()
            .contains("refuses the conversation: roles must alternate")
    );
    // The date comes from the clock, if available (Llama 3.1).
    let date = "{%- if not date_string is defined %}{%- if strftime_now is defined %}{%- set date_string = strftime_now(\"%d %b %Y\") %}\
        {%- else %}{%- set date_string = \"26 Jul 2024\" %}{%- endif %}{%- endif %}{%- if not tools is defined %}{%- set tools = none %}{%- endif %}\
        {%- if messages[0]['role'] == 'system' %}{%- set system_message = messages[0]['content']|trim %}{%- endif %}\
        {{- \"Today: \" + date_string + \"\\n\" }}{{- system_message }}{%- if tools is not none %}{{- 'tools' }}{%- endif %}\
        {%- for message in messages %}{%- if not (message.role == 'ipython' or 'tool_calls' in message) %}{{- '|' + message['role'] }}{%- endif %}{%- endfor %}";
    assert_eq!(
        render(date, &talk()).unwrap(),
        "Today: 26 Jul 2024\nBe short.|system|user|assistant|user"
    );
    // Block assignments, macros with named arguments, list concatenation (gpt-oss, Command R, GLM).
    let macros = "{%- macro section(title, text='none', level=1) -%}{{ '#' * level }} {{ title }}: {{ text }}{%- endmacro -%}\
        {%- set block %}{{ section('a', level=2) }};{% endset -%}\
        {%- set parts = [] -%}{%- for m in messages if m.role != 'system' -%}{%- set parts = parts + [m.role] -%}{%- endfor -%}\
        {{ block }}{{ ['x', 'y'] | join(', ') }}{{ section(text=messages[0].content, title='b') }}\
        {%- for m in messages %}{% if loop.previtem is defined and loop.previtem.role == 'user' %}<{% endif %}{% if loop.nextitem is not defined %}>{% endif %}{% endfor %}\
        {{- (messages | selectattr('role', '==', 'user') | list | last).content | replace('2', 'two') }}{{ {'k': [1, none, true]} | tojson }}\
        {%- if messages is iterable and messages[0] is mapping and messages[0].content is not none %}.{% endif %}";
    let expected = "## a: none;x, y# b: Be short.<>What is two+two?{\"k\": [1, null, true]}.";
    assert_eq!(render(macros, &talk()).unwrap(), expected);
}
