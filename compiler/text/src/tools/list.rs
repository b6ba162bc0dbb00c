//! Reads one call, or a list of calls, in JSON.

use super::object::{ObjectReader, Step};
use super::output::Output;
use super::scanner::is_space;

#[derive(Clone, Debug)]
enum At {
    Start,
    /// Before an element; true for the first.
    Before {
        first: bool,
    },
    In(Box<ObjectReader>),
    After,
}

/// A reader of a JSON object, or a list of objects, with names and arguments.
#[derive(Clone, Debug)]
pub(super) struct ListReader {
    at: At,
    is_list: bool,
    names: Option<Vec<String>>,
}

impl ListReader {
    /// Creates a reader. `names` has the meaning of [`ObjectReader::new`].
    pub(super) fn new(names: Option<Vec<String>>) -> ListReader {
        ListReader {
            at: At::Start,
            is_list: false,
            names,
        }
    }

    /// True in a call whose name is out.
    pub(super) fn is_committed(&self) -> bool {
        matches!(&self.at, At::In(call) if call.is_committed())
    }

    fn call(&mut self, c: char, out: &mut Output) -> Step {
        let mut call = ObjectReader::new(self.names.clone());
        let step = call.feed(c, out);
        self.at = At::In(Box::new(call));
        step
    }

    /// Reads a character. A bad character stays unread.
    pub(super) fn feed(&mut self, c: char, out: &mut Output) -> Step {
        if let At::In(call) = &mut self.at {
            return match call.feed(c, out) {
                Step::Done if self.is_list => {
                    self.at = At::After;
                    Step::More
                }
                step => step,
            };
        }
        match (&self.at, c) {
            (_, c) if is_space(c) => Step::More,
            (At::Start, '{') => self.call(c, out),
            (At::Start, '[') => {
                self.is_list = true;
                self.at = At::Before { first: true };
                Step::More
            }
            (At::Before { .. }, '{') => self.call(c, out),
            (At::After, ',') => {
                self.at = At::Before { first: false };
                Step::More
            }
            (At::After | At::Before { first: true }, ']') => Step::Done,
            _ => Step::Bad,
        }
    }
}
