//! The formats of tool calls, recognised from chat templates.

/// A model's format of tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ToolFormat {
    /// `<tool_call>{"name": …, "arguments": …}</tool_call>`: Hermes, Qwen 2.5, Qwen 3.
    Hermes,
    /// `{"name": …, "parameters": …}`, optionally after `<|python_tag|>`: Llama 3.1 and later.
    Llama3,
    /// `[TOOL_CALLS][{"name": …, "arguments": …}]`: Mistral Nemo.
    MistralNemo,
    /// `[TOOL_CALLS]name[ARGS]{…}`: Mistral Small 3.2 and later.
    Mistral,
    /// `<｜tool▁call▁begin｜>function<｜tool▁sep｜>name` and a JSON code block: DeepSeek V3 and R1.
    DeepSeekV3,
    /// `<｜tool▁call▁begin｜>name<｜tool▁sep｜>{…}`: DeepSeek V3.1.
    DeepSeekV31,
    /// `<tool_call><function=name><parameter=x>`: Qwen3-Coder, Qwen 3.5.
    QwenCoder,
    /// `<tool_call>name<arg_key>x</arg_key><arg_value>…`: GLM 4.5.
    Glm45,
    /// `<|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{…}`: Kimi K2.
    KimiK2,
    /// `<|channel|>commentary to=functions.name<|message|>{…}`: gpt-oss.
    Harmony,
    /// `<|tool_call|>[{"name": …, "arguments": …}]`: Granite, Phi-4 mini.
    Granite,
    /// `<|START_ACTION|>[{"tool_name": …, "parameters": …}]<|END_ACTION|>`: Command R7B.
    CommandR7b,
    /// `<|tool_call>call:name{x:<|"|>…<|"|>}<tool_call|>`: Gemma 4.
    Gemma4,
    /// `{"tool_calls": [{"name": …, "arguments": …}]}` or `{"response": …}`: templates that do not read tools.
    Generic,
}

/// The texts that identify a format. A template has the first format of which it contains all texts.
const TEXTS: &[(ToolFormat, &[&str])] = &[
    (ToolFormat::Gemma4, &["<|tool_call>call:", "<tool_call|>"]),
    (ToolFormat::KimiK2, &["<|tool_call_begin|>"]),
    (
        ToolFormat::DeepSeekV3,
        &["<｜tool▁calls▁begin｜>", "```json"],
    ),
    (ToolFormat::DeepSeekV31, &["<｜tool▁calls▁begin｜>"]),
    (ToolFormat::CommandR7b, &["<|START_ACTION|>"]),
    (ToolFormat::QwenCoder, &["<function=", "<parameter="]),
    (ToolFormat::Glm45, &["<arg_key>", "<arg_value>"]),
    (ToolFormat::Harmony, &["<|channel|>", "to=functions."]),
    (ToolFormat::Mistral, &["[TOOL_CALLS]", "[ARGS]"]),
    (ToolFormat::MistralNemo, &["[TOOL_CALLS]"]),
    (ToolFormat::Granite, &["<|tool_call|>"]),
    (ToolFormat::Hermes, &["<tool_call>"]),
    (ToolFormat::Llama3, &["<|python_tag|>"]),
    (ToolFormat::Llama3, &["<|start_header_id|>", "ipython"]),
];

impl ToolFormat {
    /// Recognises the format from a chat template's source. Returns [`ToolFormat::Generic`] for a template that does not
    /// read tools, or has an unknown format.
    pub fn of_template(source: &str) -> ToolFormat {
        if !source.contains("tools") {
            return ToolFormat::Generic;
        }
        let known = TEXTS
            .iter()
            .find(|(_, texts)| texts.iter().all(|t| source.contains(t)));
        known.map_or(ToolFormat::Generic, |(format, _)| *format)
    }

    /// True if the format writes arguments in a syntax other than JSON.
    pub(crate) fn converts_arguments(self) -> bool {
        matches!(
            self,
            ToolFormat::QwenCoder | ToolFormat::Glm45 | ToolFormat::Gemma4
        )
    }
}
