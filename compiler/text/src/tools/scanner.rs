//! Finds the end of a JSON value, one character at a time.

const DEEPEST: usize = 128;

/// The result of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The value goes on.
    More,
    /// The character ends the value.
    Done,
    /// The value ended before the character.
    Before,
    /// The character is not JSON.
    Bad,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Value,
    /// Behind `[`.
    FirstItem,
    /// Behind `{`.
    FirstKey,
    Key,
    Colon,
    /// Behind a value in a list or object.
    After,
    Text {
        key: bool,
    },
    Escape {
        key: bool,
    },
    Hex {
        key: bool,
        left: u8,
    },
    /// In a number: a sign, leading zero, digits, point, fraction, exponent mark, its sign, or its digits.
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Mark,
    Sign,
    Exponent,
    /// In `true`, `false` or `null`.
    Word {
        rest: &'static str,
    },
}

/// A scanner of one JSON value. Strings may contain control characters: models write line ends into them.
#[derive(Clone, Debug)]
pub(super) struct Scanner {
    at: At,
    /// The open lists and objects; true for an object.
    open: Vec<bool>,
}

impl Scanner {
    pub(super) fn new() -> Scanner {
        Scanner {
            at: At::Value,
            open: Vec::new(),
        }
    }

    /// True inside a string.
    pub(super) fn in_text(&self) -> bool {
        matches!(self.at, At::Text { .. })
    }

    /// Ends a value with its last character.
    fn ended(&mut self) -> Scan {
        self.at = At::After;
        match self.open.is_empty() {
            true => Scan::Done,
            false => Scan::More,
        }
    }

    fn to(&mut self, at: At) -> Scan {
        self.at = at;
        Scan::More
    }

    fn start(&mut self, c: char) -> Scan {
        match c {
            '{' | '[' if self.open.len() >= DEEPEST => Scan::Bad,
            '{' => {
                self.open.push(true);
                self.to(At::FirstKey)
            }
            '[' => {
                self.open.push(false);
                self.to(At::FirstItem)
            }
            '"' => self.to(At::Text { key: false }),
            '-' => self.to(At::Minus),
            '0' => self.to(At::Zero),
            '1'..='9' => self.to(At::Digits),
            't' => self.to(At::Word { rest: "rue" }),
            'f' => self.to(At::Word { rest: "alse" }),
            'n' => self.to(At::Word { rest: "ull" }),
            _ => Scan::Bad,
        }
    }

    fn close(&mut self, object: bool) -> Scan {
        match self.open.pop() {
            Some(open) if open == object => self.ended(),
            _ => Scan::Bad,
        }
    }

    fn after(&mut self, c: char) -> Scan {
        match (c, self.open.last()) {
            (',', Some(true)) => self.to(At::Key),
            (',', Some(false)) => self.to(At::Value),
            ('}', _) => self.close(true),
            (']', _) => self.close(false),
            _ => Scan::Bad,
        }
    }

    /// Ends a number before a character.
    fn number(&mut self, c: char) -> Scan {
        self.at = At::After;
        match self.open.is_empty() {
            true => Scan::Before,
            false if is_space(c) => Scan::More,
            false => self.after(c),
        }
    }

    fn string(&mut self, key: bool) -> Scan {
        match key {
            true => self.to(At::Colon),
            false => self.ended(),
        }
    }

    /// Reads a character.
    pub(super) fn feed(&mut self, c: char) -> Scan {
        let digit = c.is_ascii_digit();
        match self.at {
            At::Text { key } => match c {
                '"' => self.string(key),
                '\\' => self.to(At::Escape { key }),
                _ => Scan::More,
            },
            At::Escape { key } => match c {
                'u' => self.to(At::Hex { key, left: 4 }),
                '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => self.to(At::Text { key }),
                _ => Scan::Bad,
            },
            At::Hex { key, left } => match (c.is_ascii_hexdigit(), left) {
                (false, _) => Scan::Bad,
                (true, 1) => self.to(At::Text { key }),
                (true, _) => self.to(At::Hex {
                    key,
                    left: left - 1,
                }),
            },
            At::Word { rest } => match rest.strip_prefix(c) {
                None => Scan::Bad,
                Some("") => self.ended(),
                Some(rest) => self.to(At::Word { rest }),
            },
            At::Minus if c == '0' => self.to(At::Zero),
            At::Minus if digit => self.to(At::Digits),
            At::Digits if digit => Scan::More,
            At::Zero | At::Digits if c == '.' => self.to(At::Point),
            At::Point | At::Fraction if digit => self.to(At::Fraction),
            At::Zero | At::Digits | At::Fraction if matches!(c, 'e' | 'E') => self.to(At::Mark),
            At::Mark if matches!(c, '+' | '-') => self.to(At::Sign),
            At::Mark | At::Sign | At::Exponent if digit => self.to(At::Exponent),
            At::Zero | At::Digits | At::Fraction | At::Exponent => self.number(c),
            At::Minus | At::Point | At::Mark | At::Sign => Scan::Bad,
            _ if is_space(c) => Scan::More,
            At::FirstItem if c == ']' => self.close(false),
            At::Value | At::FirstItem => self.start(c),
            At::FirstKey if c == '}' => self.close(true),
            At::FirstKey | At::Key if c == '"' => self.to(At::Text { key: true }),
            At::Colon if c == ':' => self.to(At::Value),
            At::After => self.after(c),
            At::FirstKey | At::Key | At::Colon => Scan::Bad,
        }
    }
}

/// True for white space of JSON.
pub(super) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Adds a character of a JSON text; escapes control characters in strings.
pub(super) fn add(c: char, in_text: bool, out: &mut String) {
    match c {
        '\n' if in_text => out.push_str("\\n"),
        '\r' if in_text => out.push_str("\\r"),
        '\t' if in_text => out.push_str("\\t"),
        c if in_text && c < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
        c => out.push(c),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    /// Returns the length of the value at the start of a text.
    fn length(text: &str) -> Option<usize> {
        let mut scanner = Scanner::new();
        for (i, c) in text.char_indices() {
            match scanner.feed(c) {
                Scan::More => {}
                Scan::Done => return Some(i + c.len_utf8()),
                Scan::Before => return Some(i),
                Scan::Bad => return None,
            }
        }
        None
    }

    #[test]
    fn values_end() {
        for text in [
            "{}",
            "[]",
            "\"a\\\"\\u00e4\"",
            "-0.5e-3",
            "0",
            "120",
            "true",
            "null",
            "[1, {\"a\" : [ ] }, -2]",
        ] {
            assert_eq!(
                length(&format!(" {text}  x")),
                Some(text.len() + 1),
                "{text}"
            );
        }
        for text in [
            "{,}",
            "[1,]",
            "01 ",
            "-a",
            "1. ",
            "tru ",
            "{\"a\" 1}",
            "{a:1}",
            "[1}",
            "\"\\x\"",
            "}",
            "'a'",
        ] {
            // A number may end before the rest.
            assert!(length(text).is_none_or(|n| n == 1), "{text}");
        }
        assert_eq!(length(&"[".repeat(200)), None);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(|n| json!(n)),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_value_ends_at_its_end(value in value(), pretty in any::<bool>()) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&value).unwrap(),
                false => value.to_string(),
            };
            prop_assert_eq!(length(&format!("{text} {{")), Some(text.len()));
        }
    }
}
