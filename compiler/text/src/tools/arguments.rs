//! Reads arguments that are a JSON object after the function's name.

use super::object::Step;
use super::output::Output;
use super::scanner::{Scan, Scanner, add, is_space};

/// A reader of arguments.
#[derive(Clone, Debug)]
pub(super) struct ArgumentsReader {
    name: String,
    id: Option<String>,
    scanner: Scanner,
    is_committed: bool,
}

impl ArgumentsReader {
    pub(super) fn new(name: String, id: Option<String>) -> ArgumentsReader {
        ArgumentsReader {
            name,
            id,
            scanner: Scanner::new(),
            is_committed: false,
        }
    }

    /// True if the name is out.
    pub(super) fn is_committed(&self) -> bool {
        self.is_committed
    }

    /// Reads a character. A bad character stays unread.
    pub(super) fn feed(&mut self, c: char, out: &mut Output) -> Step {
        if !self.is_committed {
            match c {
                c if is_space(c) => return Step::More,
                '{' => {
                    out.name(&self.name, self.id.as_deref());
                    self.is_committed = true;
                }
                _ => return Step::Bad,
            }
        }
        let in_text = self.scanner.in_text();
        let scan = self.scanner.feed(c);
        if matches!(scan, Scan::More | Scan::Done) {
            let mut text = String::new();
            add(c, in_text, &mut text);
            out.arguments(&text);
        }
        match scan {
            Scan::More => Step::More,
            Scan::Done => Step::Done,
            Scan::Before | Scan::Bad => Step::Bad,
        }
    }
}
