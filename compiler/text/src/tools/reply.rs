//! Reads answers of the generic format: one JSON object with calls or with a text.

use super::list::ListReader;
use super::object::Step;
use super::output::Output;
use super::scanner::{Scan, Scanner, add, is_space};

#[derive(Clone, Debug)]
enum At {
    Start,
    BeforeKey,
    Key(Scanner, String),
    Colon,
    BeforeValue,
    Calls(ListReader),
    Text(Unescaper),
    /// A response that is not a string.
    Value(Scanner),
    End,
}

/// A reader of a generic answer.
#[derive(Clone, Debug)]
pub(super) struct ReplyReader {
    at: At,
    calls: bool,
    names: Vec<String>,
    is_committed: bool,
}

impl ReplyReader {
    /// Creates a reader that knows the names of all functions.
    pub(super) fn new(names: Vec<String>) -> ReplyReader {
        ReplyReader {
            at: At::Start,
            calls: false,
            names,
            is_committed: false,
        }
    }

    /// True if a part of the answer is out.
    pub(super) fn is_committed(&self) -> bool {
        match &self.at {
            At::Calls(calls) => calls.is_committed(),
            _ => self.is_committed,
        }
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        Step::More
    }

    fn key(&mut self, key: &str) -> Step {
        self.calls = match serde_json::from_str(key).unwrap_or("") {
            "tool_calls" | "tool_call" => true,
            "response" => false,
            _ => return Step::Bad,
        };
        self.go(At::Colon)
    }

    fn value(&mut self, c: char, out: &mut Output) -> Step {
        match (self.calls, c) {
            (true, _) => {
                let mut calls = ListReader::new(Some(self.names.clone()));
                let step = calls.feed(c, out);
                self.at = At::Calls(calls);
                step
            }
            (false, '"') => {
                self.is_committed = true;
                self.go(At::Text(Unescaper::default()))
            }
            (false, _) => {
                self.at = At::Value(Scanner::new());
                self.feed(c, out)
            }
        }
    }

    /// Reads a character. A bad character stays unread.
    pub(super) fn feed(&mut self, c: char, out: &mut Output) -> Step {
        match &mut self.at {
            At::Calls(calls) => match calls.feed(c, out) {
                Step::Done => {
                    self.is_committed = out.calls() > 0;
                    self.go(At::End)
                }
                step => step,
            },
            At::Text(text) => match text.feed(c, out) {
                Step::Done => self.go(At::End),
                step => step,
            },
            At::Value(scanner) => match scanner.feed(c) {
                scan @ (Scan::More | Scan::Done) => {
                    self.is_committed = true;
                    out.content(c.encode_utf8(&mut [0; 4]));
                    match scan {
                        Scan::Done => self.go(At::End),
                        _ => Step::More,
                    }
                }
                Scan::Before => {
                    self.at = At::End;
                    self.feed(c, out)
                }
                Scan::Bad => Step::Bad,
            },
            At::Key(scanner, key) => {
                let in_text = scanner.in_text();
                let scan = scanner.feed(c);
                add(c, in_text, key);
                match scan {
                    Scan::More => Step::More,
                    Scan::Done => {
                        let key = std::mem::take(key);
                        self.key(&key)
                    }
                    Scan::Before | Scan::Bad => Step::Bad,
                }
            }
            _ if is_space(c) => Step::More,
            At::Start if c == '{' => self.go(At::BeforeKey),
            At::BeforeKey if c == '"' => {
                self.at = At::Key(Scanner::new(), String::new());
                self.feed(c, out)
            }
            At::Colon if c == ':' => self.go(At::BeforeValue),
            At::BeforeValue => self.value(c, out),
            At::End if c == '}' => Step::Done,
            _ => Step::Bad,
        }
    }
}

/// A decoder of a JSON string after its opening quote.
#[derive(Clone, Debug, Default)]
struct Unescaper {
    escape: String,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

impl Unescaper {
    fn plain(&mut self, c: char, out: &mut Output) -> Step {
        if self.high.take().is_some() {
            out.content("\u{fffd}");
        }
        self.escape.clear();
        out.content(c.encode_utf8(&mut [0; 4]));
        Step::More
    }

    /// Ends an escape of four hexadecimal digits.
    fn unit(&mut self, out: &mut Output) -> Step {
        let unit = u32::from_str_radix(self.escape.trim_start_matches("\\u"), 16);
        let unit = unit.unwrap_or(0xfffd);
        match (self.high, unit) {
            (Some(high), 0xdc00..0xe000) => {
                self.high = None;
                let code = 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00);
                self.plain(char::from_u32(code).unwrap_or('\u{fffd}'), out)
            }
            (None, 0xd800..0xdc00) => {
                self.high = Some(unit);
                self.escape.clear();
                Step::More
            }
            _ => self.plain(char::from_u32(unit).unwrap_or('\u{fffd}'), out),
        }
    }

    fn feed(&mut self, c: char, out: &mut Output) -> Step {
        let plain = match (self.escape.len(), c) {
            (0, '"') => {
                if self.high.take().is_some() {
                    out.content("\u{fffd}");
                }
                return Step::Done;
            }
            (0, '\\') => {
                self.escape.push(c);
                return Step::More;
            }
            (0, _) => c,
            (1, 'u') => {
                self.escape.push(c);
                return Step::More;
            }
            (1, 'n') => '\n',
            (1, 't') => '\t',
            (1, 'r') => '\r',
            (1, 'b') => '\u{8}',
            (1, 'f') => '\u{c}',
            (1, '"' | '\\' | '/') => c,
            (1, _) => return Step::Bad,
            (_, c) if c.is_ascii_hexdigit() => {
                self.escape.push(c);
                return match self.escape.len() {
                    6 => self.unit(out),
                    _ => Step::More,
                };
            }
            _ => return Step::Bad,
        };
        self.plain(plain, out)
    }
}
