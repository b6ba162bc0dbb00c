//! Reads arguments in tags, one pair of tags per parameter.

use serde_json::Value;

use super::object::Step;
use super::output::Output;
use super::schema;

/// The longest name of a parameter, in bytes.
const LONGEST: usize = 512;

/// The tags of a format.
#[derive(Debug)]
pub(super) struct Tags {
    /// The text before a parameter's name.
    pub before_key: &'static str,
    pub after_key: &'static str,
    pub before_value: &'static str,
    pub after_value: &'static str,
    /// The end of the arguments.
    pub end: &'static str,
    /// True if the end belongs to the arguments; false if it closes the call.
    pub takes_end: bool,
    /// True if a line end at each end of a value belongs to the tags.
    pub lines: bool,
}

/// The tags of Qwen3-Coder: `<parameter=x>`, the value, `</parameter>`.
pub(super) const QWEN: Tags = Tags {
    before_key: "<parameter=",
    after_key: ">",
    before_value: "",
    after_value: "</parameter>",
    end: "</function>",
    takes_end: true,
    lines: true,
};

/// The tags of GLM 4.5: `<arg_key>x</arg_key>`, `<arg_value>`, the value, `</arg_value>`.
pub(super) const GLM: Tags = Tags {
    before_key: "<arg_key>",
    after_key: "</arg_key>",
    before_value: "<arg_value>",
    after_value: "</arg_value>",
    end: "</tool_call>",
    takes_end: false,
    lines: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Between,
    Value,
}

/// A reader of arguments in tags. It holds each value back until its end, because the type needs the whole value.
#[derive(Clone, Debug)]
pub(super) struct TagReader {
    tags: &'static Tags,
    parameters: Value,
    at: At,
    key: String,
    /// The number of parameters that are out.
    count: usize,
    /// The part of the value that has no end tag.
    searched: usize,
}

/// The text at a position: a tag, the start of a tag, or other text.
enum Found {
    Tag,
    Start,
    Other,
}

fn find(text: &str, tag: &str) -> Found {
    match (text.starts_with(tag), tag.starts_with(text)) {
        (true, _) => Found::Tag,
        (false, true) => Found::Start,
        (false, false) => Found::Other,
    }
}

impl TagReader {
    /// Creates a reader of arguments that follow the schema `parameters`.
    pub(super) fn new(tags: &'static Tags, parameters: Value) -> TagReader {
        TagReader {
            tags,
            parameters,
            at: At::Between,
            key: String::new(),
            count: 0,
            searched: 0,
        }
    }

    /// Writes a parameter's key, and the opening brace before the first one.
    fn open(&mut self, out: &mut Output) {
        let key = Value::from(self.key.as_str());
        out.arguments(if self.count == 0 { "{" } else { "," });
        out.arguments(&format!("{key}:"));
        self.count += 1;
    }

    /// Closes the arguments.
    fn close(&self, out: &mut Output) {
        out.arguments(if self.count == 0 { "{}" } else { "}" });
    }

    fn between(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        let space = text.len() - text.trim_start().len();
        if space > 0 {
            return (space, Step::More);
        }
        let read = match (find(text, self.tags.before_key), find(text, self.tags.end)) {
            (Found::Tag, _) => self.key(text),
            (_, Found::Tag) => {
                self.close(out);
                let end = if self.tags.takes_end {
                    self.tags.end.len()
                } else {
                    0
                };
                return (end, Step::Done);
            }
            (Found::Start, _) | (_, Found::Start) => Some(0),
            (Found::Other, Found::Other) => None,
        };
        match read {
            Some(length) => (length, Step::More),
            None => {
                self.close(out);
                (0, Step::Bad)
            }
        }
    }

    /// Reads a key and the tag before its value. Returns the length; 0 to wait for more text, `None` if they are
    /// malformed.
    fn key(&mut self, text: &str) -> Option<usize> {
        let start = self.tags.before_key.len();
        let head = &text[start..text.floor_char_boundary(LONGEST)];
        let Some(end) = head.find(self.tags.after_key) else {
            return (text.len() < LONGEST).then_some(0);
        };
        let behind = start + end + self.tags.after_key.len();
        let tag = self.tags.before_value;
        let rest = match tag.is_empty() {
            true => &text[behind..],
            false => text[behind..].trim_start(),
        };
        match find(rest, tag) {
            Found::Tag => {
                head[..end].trim().clone_into(&mut self.key);
                self.at = At::Value;
                self.searched = 0;
                Some(text.len() - rest.len() + tag.len())
            }
            Found::Start => Some(0),
            Found::Other => None,
        }
    }

    fn value(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        let tag = self.tags.after_value;
        let from = text.floor_char_boundary(self.searched);
        let Some(end) = text[from..].find(tag).map(|at| from + at) else {
            self.searched = text.len().saturating_sub(tag.len());
            return (0, Step::More);
        };
        self.open(out);
        let value = self.trimmed(&text[..end]);
        out.arguments(&schema::to_json(value, &self.parameters, &self.key));
        self.at = At::Between;
        (end + tag.len(), Step::More)
    }

    fn trimmed<'a>(&self, value: &'a str) -> &'a str {
        if !self.tags.lines {
            return value;
        }
        let value = value.strip_prefix('\n').unwrap_or(value);
        value.strip_suffix('\n').unwrap_or(value)
    }

    /// Reads the start of a text. Returns the length of the read part.
    pub(super) fn read(&mut self, text: &str, out: &mut Output) -> (usize, Step) {
        match self.at {
            _ if text.is_empty() => (0, Step::More),
            At::Between => self.between(text, out),
            At::Value => self.value(text, out),
        }
    }

    /// Writes the unread rest of a cut answer.
    pub(super) fn cut(&mut self, text: &str, out: &mut Output) {
        if self.at == At::Value {
            self.open(out);
            let string = Value::from(self.trimmed(text)).to_string();
            out.arguments(string.strip_suffix('"').unwrap_or(&string));
        }
    }
}
