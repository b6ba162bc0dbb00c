//! The form of an answer to a chat: text, reasoning, and calls of tools.

/// A change of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Delta {
    /// Text of the message.
    Content(String),
}

/// The form of answers.
#[derive(Clone, Debug)]
pub(crate) struct Form;

/// The parser of one answer.
#[derive(Clone, Debug)]
pub(crate) struct FormParser;

impl Form {
    /// Returns the parser of an answer.
    pub(crate) fn parser(&self) -> FormParser {
        FormParser
    }
}

impl FormParser {
    /// Appends text of the answer.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Delta> {
        match text.is_empty() {
            true => Vec::new(),
            false => vec![Delta::Content(text.to_owned())],
        }
    }

    /// Ends the answer.
    pub(crate) fn finish(&mut self) -> Vec<Delta> {
        Vec::new()
    }
}
