//! Reads arguments in Gemma 4's syntax: JSON with plain keys, and strings between `<|"|>`.

use serde_json::Value;

use super::object::Step;
use super::output::Output;

const QUOTE: &str = "<|\"|>";
const DEEPEST: usize = 128;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    FirstKey,
    Key,
    FirstItem,
    Value,
    After,
}

/// A reader of arguments. It holds each key, string, number and word back until its end.
#[derive(Clone, Debug)]
pub(super) struct GemmaReader {
    at: At,
    /// The open lists and objects; true for an object.
    open: Vec<bool>,
    /// The part of the string that has no closing quote.
    searched: usize,
}

impl GemmaReader {
    pub(super) fn new() -> GemmaReader {
        GemmaReader {
            at: At::Start,
            open: Vec::new(),
            searched: 0,
        }
    }

    fn open(&mut self, object: bool, out: &mut Output) -> Step {
        if self.open.len() >= DEEPEST {
            return Step::Bad;
        }
        self.open.push(object);
        out.arguments(if object { "{" } else { "[" });
        self.at = if object { At::FirstKey } else { At::FirstItem };
        Step::More
    }

    fn close(&mut self, object: bool, out: &mut Output) -> Step {
        if self.open.pop() != Some(object) {
            return Step::Bad;
        }
        out.arguments(if object { "}" } else { "]" });
        self.at = At::After;
        match self.open.is_empty() {
            true => Step::Done,
            false => Step::More,
        }
    }

    /// Returns a string and its length; `None` if it has no end, or is not a string.
    fn string<'a>(&mut self, text: &'a str) -> Option<(&'a str, usize)> {
        let inner = text.strip_prefix(QUOTE)?;
        let from = inner.floor_char_boundary(self.searched);
        let Some(end) = inner[from..].find(QUOTE).map(|at| from + at) else {
            self.searched = inner.len().saturating_sub(QUOTE.len());
            return None;
        };
        self.searched = 0;
        Some((&inner[..end], end + 2 * QUOTE.len()))
    }

    fn key(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        let waits = (0, Step::More);
        let (key, length) = match text.starts_with(QUOTE) {
            true => match self.string(text) {
                Some(found) => found,
                None => return waits,
            },
            false if QUOTE.starts_with(text) => return waits,
            false => match text.find([':', ',', '{', '}', '[', ']']) {
                Some(end) => (&text[..end], end),
                None => return waits,
            },
        };
        let rest = &text[length..];
        let colon = rest.trim_start();
        match colon.chars().next() {
            None => waits,
            Some(':') => {
                out.arguments(&format!("{}:", Value::from(key.trim())));
                self.at = At::Value;
                (text.len() - colon.len() + 1, Step::More)
            }
            Some(_) => (0, Step::Bad),
        }
    }

    fn value(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        if text.starts_with(QUOTE) {
            let Some((string, length)) = self.string(text) else {
                return (0, Step::More);
            };
            out.arguments(&Value::from(string).to_string());
            self.at = At::After;
            return (length, Step::More);
        }
        if QUOTE.starts_with(text) {
            return (0, Step::More);
        }
        let Some(end) = text.find([',', '}', ']', '{', '[']) else {
            return (0, Step::More);
        };
        let word = text[..end].trim();
        if word.is_empty() {
            return (0, Step::Bad);
        }
        let json = match serde_json::from_str::<Value>(word) {
            Ok(_) => word.to_owned(),
            Err(_) => Value::from(word).to_string(),
        };
        out.arguments(&json);
        self.at = At::After;
        (end, Step::More)
    }

    /// Reads the start of a text. Returns the length of the read part.
    pub(super) fn read(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        let Some(c) = text.chars().next() else {
            return (0, Step::More);
        };
        let space = text.len() - text.trim_start().len();
        if space > 0 {
            return (space, Step::More);
        }
        let one = |step: Step| (if step == Step::Bad { 0 } else { 1 }, step);
        let within = self.open.last().copied();
        match (self.at, c) {
            (At::Start | At::Value | At::FirstItem, '{') => one(self.open(true, out)),
            (At::Value | At::FirstItem, '[') => one(self.open(false, out)),
            (At::FirstKey | At::After, '}') => one(self.close(true, out)),
            (At::FirstItem | At::After, ']') => one(self.close(false, out)),
            (At::After, ',') => {
                out.arguments(",");
                self.at = match within {
                    Some(true) => At::Key,
                    _ => At::Value,
                };
                one(Step::More)
            }
            (At::Start | At::After, _) => (0, Step::Bad),
            (At::FirstKey | At::Key, _) => self.key(text, out),
            (At::FirstItem | At::Value, _) => self.value(text, out),
        }
    }

    /// Writes the unread rest of a cut answer.
    pub(super) fn cut(&mut self, text: &str, out: &mut Output) {
        let Some(string) = text.strip_prefix(QUOTE) else {
            return;
        };
        if matches!(self.at, At::Value | At::FirstItem) {
            let string = Value::from(string).to_string();
            out.arguments(string.strip_suffix('"').unwrap_or(&string));
        }
    }
}
