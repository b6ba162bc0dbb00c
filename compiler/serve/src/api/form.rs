//! The form of an answer to a chat: text, reasoning, and calls of tools.

use tpc_text::{AnswerParser, Reasoning, Show, ToolFormat};

use super::tools::Tools;
pub(crate) use tpc_text::Delta;

/// The form of answers.
#[derive(Clone, Debug)]
pub(crate) struct Form(Option<AnswerParser>);

/// The parser of one answer.
#[derive(Clone, Debug)]
pub(crate) struct FormParser(Option<AnswerParser>);

impl Form {
    /// Returns the form of answers with the reasoning at this place.
    pub(crate) fn new(format: ToolFormat, tools: &Tools, reasoning: Reasoning) -> Form {
        // Answers of models without tools or reasoning stay as they are.
        let is_text = tools.list().is_empty()
            && (format == ToolFormat::Generic || reasoning == Reasoning::InContent);
        match is_text && reasoning != Reasoning::Open {
            true => Form(None),
            false => Form(Some(AnswerParser::new(format, tools.list(), reasoning))),
        }
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
