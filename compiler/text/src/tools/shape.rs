//! The markers of each format.

use super::format::ToolFormat;

/// The markers of a format, as text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// The markers around all calls.
    pub section: Option<(&'static str, &'static str)>,
    /// The marker before a call.
    pub open: Option<&'static str>,
    /// The marker after a call; models may omit it.
    pub close: &'static str,
    /// The start of a call whose opening marker the model omitted.
    pub bare_head: Option<&'static str>,
    /// True if the function's name stands between the opening marker and the arguments.
    pub has_head: bool,
    /// True if a JSON object at the answer's start may be a call.
    pub bare_json: bool,
    /// Markers that are not content.
    pub silent: &'static [&'static str],
    /// The markers around reasoning.
    pub think: (&'static str, &'static str),
}

/// A format without markers.
const PLAIN: Shape = Shape {
    section: None,
    open: None,
    close: "",
    bare_head: None,
    has_head: false,
    bare_json: false,
    silent: &[],
    think: ("<think>", "</think>"),
};

const DEEPSEEK: Shape = Shape {
    section: Some(("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")),
    open: Some("<｜tool▁call▁begin｜>"),
    close: "<｜tool▁call▁end｜>",
    has_head: true,
    ..PLAIN
};

impl Shape {
    /// Returns the markers of a format.
    pub(super) fn of(format: ToolFormat) -> Shape {
        let call = |open, close| Shape {
            open: Some(open),
            close,
            ..PLAIN
        };
        let headed = |open, close| Shape {
            has_head: true,
            ..call(open, close)
        };
        match format {
            ToolFormat::Hermes => call("<tool_call>", "</tool_call>"),
            ToolFormat::Llama3 => Shape {
                bare_json: true,
                ..call("<|python_tag|>", "")
            },
            ToolFormat::MistralNemo | ToolFormat::Mistral => Shape {
                think: ("[THINK]", "[/THINK]"),
                ..headed("[TOOL_CALLS]", "")
            },
            ToolFormat::DeepSeekV3 => Shape {
                close: "```<｜tool▁call▁end｜>",
                ..DEEPSEEK
            },
            ToolFormat::DeepSeekV31 => DEEPSEEK,
            ToolFormat::QwenCoder => Shape {
                bare_head: Some("<function="),
                ..headed("<tool_call>", "</tool_call>")
            },
            ToolFormat::Glm45 => headed("<tool_call>", "</tool_call>"),
            ToolFormat::KimiK2 => Shape {
                section: Some(("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")),
                ..headed("<|tool_call_begin|>", "<|tool_call_end|>")
            },
            ToolFormat::Harmony => Shape {
                close: "<|call|>",
                ..PLAIN
            },
            ToolFormat::Granite => call("<|tool_call|>", "<|/tool_call|>"),
            ToolFormat::CommandR7b => Shape {
                silent: &[
                    "<|START_RESPONSE|>",
                    "<|END_RESPONSE|>",
                    "<|START_TEXT|>",
                    "<|END_TEXT|>",
                ],
                think: ("<|START_THINKING|>", "<|END_THINKING|>"),
                ..call("<|START_ACTION|>", "<|END_ACTION|>")
            },
            ToolFormat::Gemma4 => Shape {
                think: ("<|channel>thought", "<channel|>"),
                ..headed("<|tool_call>", "<tool_call|>")
            },
            ToolFormat::Generic => Shape {
                bare_json: true,
                ..PLAIN
            },
        }
    }
}
