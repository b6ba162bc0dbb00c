//! The messages of a chat: lines of a terminal, or of standard input.

use std::io::{self, BufRead};

use tpc_diag::{Diagnostic, codes};

use super::terminal::{Terminal, Typed, goes_on, joined};
use crate::output::Failure;

pub(super) enum Messages {
    Terminal(Box<Terminal>),
    /// Standard input, for scripts.
    Lines,
}

impl Messages {
    pub(super) fn open(piped: bool) -> Result<Messages, Failure> {
        match piped {
            true => Ok(Messages::Lines),
            false => Terminal::open().map(|t| Messages::Terminal(Box::new(t))),
        }
    }

    pub(super) fn next(&mut self) -> Result<Typed, Failure> {
        match self {
            Messages::Terminal(terminal) => terminal.next(),
            Messages::Lines => next_of(&mut io::stdin().lock()),
        }
    }
}

/// Reads a message: a line, and the next one after a backslash.
fn next_of(input: &mut impl BufRead) -> Result<Typed, Failure> {
    let mut text = String::new();
    loop {
        let read = input.read_line(&mut text).map_err(|e| unreadable(&e))?;
        if text.ends_with('\n') {
            text.pop();
        }
        if read == 0 || !goes_on(&text) {
            return Ok(match read == 0 && text.is_empty() {
                true => Typed::End,
                false => Typed::Message(joined(&text)),
            });
        }
        text.push('\n');
    }
}

fn unreadable(e: &io::Error) -> Failure {
    let d = Diagnostic::new(&codes::FILE_ACCESS, "standard input", e.to_string());
    Failure::usage(d.help("give UTF-8 text, a message per line"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages() {
        let mut input: &[u8] = b"a b\n\nc\\\nd\nlast";
        let mut found = Vec::new();
        while let Ok(Typed::Message(text)) = next_of(&mut input) {
            found.push(text);
        }
        assert_eq!(found, ["a b", "", "c\nd", "last"]);
        let mut wrong: &[u8] = b"\xff\n";
        assert!(next_of(&mut wrong).is_err());
    }
}
