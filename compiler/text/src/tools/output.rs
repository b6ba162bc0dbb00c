//! The pieces of a parsed answer.

/// A piece of an answer, in order. Pieces of one kind and index are concatenated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Text for the user.
    Content(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// The start of a call.
    CallName {
        /// The number of the call, from 0.
        index: usize,
        /// The function's name.
        name: String,
        /// The id that the model wrote, if its format has one before the arguments (Kimi K2).
        id: Option<String>,
    },
    /// A part of the JSON text of a call's arguments.
    CallArguments {
        /// The number of the call.
        index: usize,
        /// The part.
        text: String,
    },
}

/// Collects the pieces of one step, and joins neighbours.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    deltas: Vec<Delta>,
    calls: usize,
}

impl Output {
    pub(super) fn content(&mut self, text: &str) {
        match self.deltas.last_mut() {
            _ if text.is_empty() => {}
            Some(Delta::Content(last)) => last.push_str(text),
            _ => self.deltas.push(Delta::Content(text.to_owned())),
        }
    }

    pub(super) fn reasoning(&mut self, text: &str) {
        match self.deltas.last_mut() {
            _ if text.is_empty() => {}
            Some(Delta::Reasoning(last)) => last.push_str(text),
            _ => self.deltas.push(Delta::Reasoning(text.to_owned())),
        }
    }

    /// Starts a call.
    pub(super) fn name(&mut self, name: &str, id: Option<&str>) {
        self.deltas.push(Delta::CallName {
            index: self.calls,
            name: name.to_owned(),
            id: id.map(str::to_owned),
        });
        self.calls += 1;
    }

    /// Adds to the arguments of the last call.
    pub(super) fn arguments(&mut self, part: &str) {
        let last = self.calls.saturating_sub(1);
        match self.deltas.last_mut() {
            _ if part.is_empty() => {}
            Some(Delta::CallArguments { index, text }) if *index == last => text.push_str(part),
            _ => self.deltas.push(Delta::CallArguments {
                index: last,
                text: part.to_owned(),
            }),
        }
    }

    /// Returns the number of started calls.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    pub(super) fn take(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }
}
