//! The form of an answer to a chat: text, reasoning, and calls of tools.

use tpc_text::{AnswerParser, ChatTemplate, Reasoning, Show, ToolFormat};

use super::tools::Tools;
pub(crate) use tpc_text::Delta;

/// The form of answers.
#[derive(Clone, Debug)]
pub(crate) struct Form(Option<AnswerParser>);

/// The parser of one answer.
#[derive(Clone, Debug)]
pub(crate) struct FormParser(Option<AnswerParser>);

impl Form {
    /// Returns the form of a template's answers with the reasoning at this place.
    pub(crate) fn new(template: &ChatTemplate, tools: &Tools, reasoning: Reasoning) -> Form {
        let format = template.tool_format();
        let separates = match reasoning {
            Reasoning::InContent => false,
            Reasoning::Separate => {
                format == ToolFormat::Harmony || template.source().contains("think>")
            }
            Reasoning::Open => true,
        };
        // Other answers are text as it is.
        let is_parsed = separates || !tools.list().is_empty();
        Form(is_parsed.then(|| AnswerParser::new(format, tools.list(), reasoning)))
    }

    /// Returns the visibility of special tokens that the parser needs.
    pub(crate) const fn show(&self) -> Show {
        match self.0 {
            Some(_) => Show::Special,
            None => Show::Text,
        }
    }

    /// Returns the parser of an answer.
    pub(crate) fn parser(&self) -> FormParser {
        FormParser(self.0.clone())
    }
}

impl FormParser {
    /// Appends text of the answer.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Delta> {
        match &mut self.0 {
            Some(parser) => parser.push(text),
            None if text.is_empty() => Vec::new(),
            None => vec![Delta::Content(text.to_owned())],
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        self.0
            .as_mut()
            .map(AnswerParser::finish)
            .unwrap_or_default()
    }
}
