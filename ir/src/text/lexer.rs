use super::error::{ParseError, ParseErrorKind};
use super::spans::Span;

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    Word(&'a str),
    Int(u64),
    Float(f32),
    /// The text between quotes, with its escapes as written.
    Quoted(&'a str),
    /// One of the characters in [`PUNCTUATION`].
    Punct(u8),
    End,
}

const PUNCTUATION: &[u8] = b":,=@*+-/()[]{}";

#[derive(Clone, Copy, Debug)]
pub(super) struct Lexer<'a> {
    line: &'a str,
    base: usize,
    at: usize,
}

impl<'a> Lexer<'a> {
    /// Returns a lexer of a line that begins at byte `base` of the text; `line` excludes the line end.
    pub(super) const fn new(line: &'a str, base: usize) -> Lexer<'a> {
        Lexer { line, base, at: 0 }
    }

    fn span(&self, start: usize) -> Span {
        Span::new(self.base + start, self.base + self.at)
    }

    fn error(&self, kind: ParseErrorKind, start: usize) -> ParseError {
        ParseError::new(kind, self.span(start))
    }

    fn skip(&mut self, while_true: impl Fn(u8) -> bool) {
        let rest = &self.line.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|&&b| while_true(b)).count();
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.line.as_bytes().get(self.at + ahead).copied()
    }

    /// Returns the next token and its span.
    ///
    /// # Errors
    /// Returns an error for an unknown character, an unclosed quote or a malformed number.
    pub(super) fn next(&mut self) -> Result<(Token<'a>, Span), ParseError> {
        self.skip(|b| matches!(b, b' ' | b'\t' | b'\r'));
        let start = self.at;
        let token = match self.byte(0) {
            None | Some(b';') => Token::End,
            Some(b'"') => self.string_literal()?,
            Some(b) if b.is_ascii_digit() => self.number()?,
            Some(b) if b.is_ascii_alphabetic() || b == b'_' => {
                self.skip(is_word);
                Token::Word(&self.line[start..self.at])
            }
            Some(b) if PUNCTUATION.contains(&b) => {
                self.at += 1;
                Token::Punct(b)
            }
            Some(_) => {
                let found = self.line[start..].chars().next().unwrap_or('\u{fffd}');
                self.at += found.len_utf8();
                return Err(self.error(ParseErrorKind::Character { found }, start));
            }
        };
        Ok((token, self.span(start)))
    }

    fn string_literal(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        self.at += 1;
        loop {
            self.skip(|b| b != b'"' && b != b'\\');
            match self.byte(0) {
                Some(b'"') => {
                    let inner = &self.line[start + 1..self.at];
                    self.at += 1;
                    return Ok(Token::Quoted(inner));
                }
                // The escaped character may be a quote; no byte of a non-ASCII character is one.
                Some(_) if self.byte(1).is_some_and(|b| b.is_ascii()) => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    let defect = "the closing quote is missing";
                    return Err(self.error(ParseErrorKind::Quoted { defect }, start));
                }
            }
        }
    }

    fn number(&mut self) -> Result<Token<'a>, ParseError> {
        let start = self.at;
        let bad = |lexer: &Self, defect| lexer.error(ParseErrorKind::Number { defect }, start);
        self.skip(|b| b.is_ascii_digit());
        let mut float = false;
        if self.byte(0) == Some(b'.') {
            float = true;
            self.at += 1;
            if !self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
                return Err(bad(self, "no digit after the point"));
            }
            self.skip(|b| b.is_ascii_digit());
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            float = true;
            self.at += 1;
            if matches!(self.byte(0), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.byte(0).is_some_and(|b| b.is_ascii_digit()) {
                return Err(bad(self, "no digit in the exponent"));
            }
            self.skip(|b| b.is_ascii_digit());
        }
        if self.byte(0).is_some_and(is_word) {
            self.skip(is_word);
            return Err(bad(self, "letters follow the digits"));
        }
        let digits = &self.line[start..self.at];
        if !float {
            let n = digits.parse().ok().map(Token::Int);
            return n.ok_or_else(|| bad(self, "the integer exceeds 2^64 - 1"));
        }
        let x: Option<f32> = digits.parse().ok().filter(|x: &f32| x.is_finite());
        x.map(Token::Float)
            .ok_or_else(|| bad(self, "the number exceeds the range of 32-bit floats"))
    }
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

pub(super) fn unescape(quoted: &str, span: Span) -> Result<String, ParseError> {
    let bad = |defect| ParseError::new(ParseErrorKind::Quoted { defect }, span);
    let mut out = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some(i) = rest.find('\\') {
        out.push_str(&rest[..i]);
        rest = &rest[i + 1..];
        let mut chars = rest.chars();
        match chars.next() {
            Some('"') => out.push('"'),
            Some('\\') => out.push('\\'),
            Some('n') => out.push('\n'),
            Some('u') => {
                let hex = chars.as_str().strip_prefix('{');
                let hex =
                    hex.and_then(|r| Some((&r[..r.bytes().take(8).position(|b| b == b'}')?], r)));
                let (hex, tail) = hex.ok_or_else(|| bad("\\u is not followed by {hex}"))?;
                let code = u32::from_str_radix(hex, 16).ok().and_then(char::from_u32);
                let hex_only = hex.bytes().all(|b| b.is_ascii_hexdigit());
                let code = code.filter(|_| hex_only);
                out.push(code.ok_or_else(|| bad("\\u{…} is not a character"))?);
                chars = tail[hex.len() + 1..].chars();
            }
            Some(_) | None => return Err(bad("unknown escape")),
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    Ok(out)
}

pub(super) fn describe(token: Token<'_>) -> String {
    match token {
        Token::Word(w) => format!("`{}`", shorten(w)),
        Token::Int(n) => format!("`{n}`"),
        Token::Float(x) => format!("`{x:?}`"),
        Token::Quoted(_) => "text in quotes".to_owned(),
        Token::Punct(b) => format!("`{}`", char::from(b)),
        Token::End => "the end of the line".to_owned(),
    }
}

pub(super) fn shorten(s: &str) -> String {
    match s.char_indices().nth(40) {
        None => s.to_owned(),
        Some((i, _)) => format!("{}…", &s[..i]),
    }
}
