//! Reads messages on a terminal, with line editing, history, and pasted text as one message.

use std::io;

use rustyline::completion::Completer;
use rustyline::config::{Behavior, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Editor, Helper};

use tpc_diag::{Diagnostic, codes};

use crate::output::Failure;

const PROMPT: &str = "> ";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// A message; backslashes at line ends are removed.
    Message(String),
    /// Ctrl-D at the start of a line: the end of input.
    End,
    /// Ctrl-C.
    Interrupted,
}

pub(super) struct Terminal(Editor<Lines, MemHistory>);

impl Terminal {
    pub(super) fn open() -> Result<Terminal, Failure> {
        let config = Config::builder()
            .behavior(Behavior::PreferTerm)
            .auto_add_history(true)
            .build();
        let mut editor =
            Editor::with_history(config, MemHistory::new()).map_err(|e| unreadable(&e))?;
        editor.set_helper(Some(Lines));
        Ok(Terminal(editor))
    }

    pub(super) fn next(&mut self) -> Result<Typed, Failure> {
        loop {
            match self.0.readline(PROMPT) {
                Ok(text) => return Ok(Typed::Message(joined(&text))),
                Err(ReadlineError::Eof) => return Ok(Typed::End),
                Err(ReadlineError::Interrupted) => return Ok(Typed::Interrupted),
                // The window was resized, or the program was stopped and continued.
                Err(ReadlineError::Signal(_)) => {}
                Err(ReadlineError::Io(e)) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(unreadable(&e)),
            }
        }
    }
}

/// Validates input lines: a backslash at the end continues the message.
struct Lines;

/// True if the message continues on another line.
pub(super) fn goes_on(text: &str) -> bool {
    text.ends_with('\\')
}

/// Removes the backslashes at line ends.
pub(super) fn joined(text: &str) -> String {
    text.replace("\\\n", "\n")
}

impl Validator for Lines {
    fn validate(&self, typed: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        Ok(match goes_on(typed.input()) {
            true => ValidationResult::Incomplete,
            false => ValidationResult::Valid(None),
        })
    }
}

impl Completer for Lines {
    type Candidate = String;
}

impl Hinter for Lines {
    type Hint = String;
}

impl Highlighter for Lines {}

impl Helper for Lines {}

fn unreadable(e: &ReadlineError) -> Failure {
    let d = Diagnostic::new(&codes::FILE_ACCESS, "the terminal", e.to_string());
    Failure::usage(d.help("type UTF-8 text, or give it by -p TEXT"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backslash_at_the_end_of_a_line_goes_on() {
        assert!(goes_on("a\\") && goes_on("a\\\nb\\") && !goes_on("a\\ ") && !goes_on(""));
        assert_eq!(joined("a\\\nb\nc\\d"), "a\nb\nc\\d");
    }
}
