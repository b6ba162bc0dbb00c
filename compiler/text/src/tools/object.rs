//! Reads calls that are JSON objects with a name and arguments.

use serde_json::Value;

use super::output::Output;
use super::scanner::{Scan, Scanner, add, is_space};

/// The result of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The call goes on.
    More,
    /// The character ends the call.
    Done,
    /// The character does not belong to a call.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    FirstKey,
    NextKey,
    Key,
    Colon,
    BeforeValue,
    Value,
    AfterValue,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Arguments,
    /// Arguments in a JSON string.
    QuotedArguments,
    Other,
}

/// A reader of one call.
///
/// Holds arguments before the name back.
#[derive(Clone, Debug)]
pub(super) struct ObjectReader {
    at: At,
    scanner: Scanner,
    /// The JSON text of a key or value.
    text: String,
    field: Field,
    has_name: bool,
    has_arguments: bool,
    /// The arguments, until the name is known.
    held: String,
    /// The allowed names; `None` allows all names and all other keys.
    names: Option<Vec<String>>,
}

impl ObjectReader {
    /// Creates a reader. With `names`, an object with another name, or with an unknown first key, is not a call.
    pub(super) fn new(names: Option<Vec<String>>) -> ObjectReader {
        ObjectReader {
            at: At::Start,
            scanner: Scanner::new(),
            text: String::new(),
            field: Field::Other,
            has_name: false,
            has_arguments: false,
            held: String::new(),
            names,
        }
    }

    /// True if the name is out.
    pub(super) fn is_committed(&self) -> bool {
        self.has_name
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        Step::More
    }

    /// Starts a key or value.
    fn start(&mut self, at: At, c: char, out: &mut Output) -> Step {
        self.scanner = Scanner::new();
        self.text.clear();
        self.at = at;
        self.value(c, out)
    }

    /// Reads a character of a key or value.
    fn value(&mut self, c: char, out: &mut Output) -> Step {
        let in_text = self.scanner.in_text();
        let scan = self.scanner.feed(c);
        if matches!(scan, Scan::More | Scan::Done) {
            match (self.at, self.field) {
                (At::Value, Field::Arguments) if self.has_name => {
                    let mut text = String::new();
                    add(c, in_text, &mut text);
                    out.arguments(&text);
                }
                _ => add(c, in_text, &mut self.text),
            }
        }
        match scan {
            Scan::More => Step::More,
            Scan::Bad => Step::Bad,
            Scan::Done if self.at == At::Key => self.key(),
            Scan::Done => self.ended(out),
            Scan::Before => match self.ended(out) {
                Step::Bad => Step::Bad,
                _ => self.feed(c, out),
            },
        }
    }

    /// Ends a key.
    fn key(&mut self) -> Step {
        let key: String = serde_json::from_str(&self.text).unwrap_or_default();
        self.field = match key.as_str() {
            "name" | "tool_name" | "function" if !self.has_name => Field::Name,
            "arguments" | "parameters" if !self.has_arguments => Field::Arguments,
            _ => Field::Other,
        };
        let known = self.has_name || self.has_arguments || self.field != Field::Other;
        if self.names.is_some() && !known && !matches!(key.as_str(), "type" | "id") {
            return Step::Bad;
        }
        self.go(At::Colon)
    }

    /// Ends a value.
    fn ended(&mut self, out: &mut Output) -> Step {
        self.at = At::AfterValue;
        match self.field {
            Field::Other => {}
            Field::Name => {
                let Ok(Value::String(name)) = serde_json::from_str(&self.text) else {
                    return Step::Bad;
                };
                let allowed = self.names.as_ref().is_none_or(|n| n.contains(&name));
                if name.is_empty() || !allowed {
                    return Step::Bad;
                }
                self.has_name = true;
                out.name(&name, None);
                out.arguments(&self.held);
            }
            Field::QuotedArguments => {
                let quoted: String = serde_json::from_str(&self.text).unwrap_or_default();
                let is_json = serde_json::from_str::<Value>(&quoted).is_ok();
                self.arguments(if is_json { quoted } else { self.text.clone() }, out);
            }
            Field::Arguments => self.arguments(self.text.clone(), out),
        }
        Step::More
    }

    /// Ends the arguments; `text` is the part that is not out.
    fn arguments(&mut self, text: String, out: &mut Output) {
        self.has_arguments = true;
        match self.has_name {
            true => out.arguments(&text),
            false => self.held = text,
        }
    }

    /// Reads a character. A bad character stays unread.
    pub(super) fn feed(&mut self, c: char, out: &mut Output) -> Step {
        match self.at {
            At::Key | At::Value => self.value(c, out),
            _ if is_space(c) => Step::More,
            At::Start if c == '{' => self.go(At::FirstKey),
            At::FirstKey | At::NextKey if c == '"' => self.start(At::Key, c, out),
            At::Colon if c == ':' => self.go(At::BeforeValue),
            At::BeforeValue => {
                if self.field == Field::Arguments && c == '"' {
                    self.field = Field::QuotedArguments;
                }
                self.start(At::Value, c, out)
            }
            At::AfterValue if c == ',' => self.go(At::NextKey),
            At::AfterValue if c == '}' && self.has_name => {
                if !self.has_arguments {
                    out.arguments("{}");
                }
                Step::Done
            }
            _ => Step::Bad,
        }
    }
}
