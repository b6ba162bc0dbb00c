//! The parser's frame: lines, tokens and recovery; statements are in [`super::statement`].

use super::error::{MAX_TEXT, ParseError, ParseErrorKind};
use super::lexer::{Lexer, Token, describe, shorten, unescape};
use super::names::{Kind, Names, Referent};
use super::spans::{Span, Spans};
use crate::graph::Graph;

/// The number of errors that stops parsing.
pub const MAX_ERRORS: usize = 20;

/// The maximum nesting of brackets.
pub const MAX_DEPTH: usize = 32;

/// An unverified graph and the positions of its entities in the text.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedGraph {
    /// The graph.
    pub graph: Graph,
    /// The spans.
    pub spans: Spans,
}

/// Parses a graph in [this form](super).
///
/// # Errors
/// Returns the defects by line, at most one per line and [`MAX_ERRORS`] in all.
pub fn parse(text: &str) -> Result<ParsedGraph, Vec<ParseError>> {
    parse_with(text, &mut |_, _, _| Ok(false))
}

/// A parser of statements after a graph, given the first word of a line; returns false for an unknown word.
pub(crate) type Statements<'a, 's> =
    &'s mut dyn FnMut(&mut Parser<'a>, &'a str, Span) -> Result<bool, ParseError>;

pub(crate) fn parse_with<'a>(
    text: &'a str,
    others: Statements<'a, '_>,
) -> Result<ParsedGraph, Vec<ParseError>> {
    if text.len() > MAX_TEXT {
        let found = text.len();
        let error = ParseError::new(ParseErrorKind::TooLong { found }, Span::default());
        return Err(vec![error]);
    }
    let mut parser = Parser {
        lexer: Lexer::new("", 0),
        peeked: None,
        end: 0,
        graph: Graph::new(""),
        spans: Spans::default(),
        names: Names::default(),
        layer: None,
    };
    let mut errors = Vec::new();
    let mut header = None;
    let mut base = 0;
    for line in text.split('\n') {
        parser.begin(line, base);
        base += line.len() + 1;
        let done = match header {
            None => parser.header().map(|span| header = span),
            Some(_) => parser.statement(others),
        };
        let Err(error) = done else { continue };
        errors.push(error);
        if header.is_none() || errors.len() >= MAX_ERRORS {
            return Err(errors);
        }
        parser.begin(line, base - line.len() - 1);
        parser.reject_definitions();
    }
    let Some(header) = header else {
        let found = "the end of the text".to_owned();
        let span = Span::new(text.len(), text.len());
        errors.push(ParseError::new(ParseErrorKind::NotTpir { found }, span));
        return Err(errors);
    };
    if parser.spans.graph == Span::default() && errors.is_empty() {
        let defect = "is missing";
        errors.push(ParseError::new(
            ParseErrorKind::GraphLine { defect },
            header,
        ));
    }
    if errors.is_empty() {
        Ok(ParsedGraph {
            graph: parser.graph,
            spans: parser.spans,
        })
    } else {
        Err(errors)
    }
}

pub(crate) struct Parser<'a> {
    lexer: Lexer<'a>,
    peeked: Option<(Token<'a>, Span)>,
    end: usize,
    pub(crate) graph: Graph,
    pub(super) spans: Spans,
    pub(crate) names: Names,
    pub(super) layer: Option<u32>,
}

impl<'a> Parser<'a> {
    fn begin(&mut self, line: &'a str, base: usize) {
        self.lexer = Lexer::new(line, base);
        self.peeked = None;
        self.end = base;
    }

    fn header(&mut self) -> Result<Option<Span>, ParseError> {
        match self.peek() {
            Ok((Token::End, _)) => Ok(None),
            Ok((Token::Word("tpir"), start)) => {
                self.next()?;
                let (found, span) = self.int("the version, `1`")?;
                if found != 1 {
                    return Err(ParseError::new(ParseErrorKind::Version { found }, span));
                }
                self.expect_end()?;
                Ok(Some(self.span_from(start)))
            }
            Ok((token, span)) => {
                let found = describe(token);
                Err(ParseError::new(ParseErrorKind::NotTpir { found }, span))
            }
            Err(e) => {
                let found = "something else".to_owned();
                Err(ParseError::new(ParseErrorKind::NotTpir { found }, e.span))
            }
        }
    }

    fn reject_definitions(&mut self) {
        loop {
            match self.next() {
                Ok((Token::End | Token::Punct(b'='), _)) => return,
                Ok((Token::Word(word), _)) => {
                    for kind in Kind::ALL {
                        if let Some(n) = kind.number(word) {
                            self.names.reject(kind, n);
                        }
                    }
                }
                // An unclosed quote takes the rest of the line.
                Ok(_) | Err(_) => {}
            }
        }
    }

    pub(crate) fn peek(&mut self) -> Result<(Token<'a>, Span), ParseError> {
        match self.peeked {
            Some(t) => Ok(t),
            None => {
                let t = self.lexer.next()?;
                self.peeked = Some(t);
                Ok(t)
            }
        }
    }

    pub(crate) fn next(&mut self) -> Result<(Token<'a>, Span), ParseError> {
        let (token, span) = self.peek()?;
        self.peeked = None;
        if token != Token::End {
            self.end = span.end;
        }
        Ok((token, span))
    }

    pub(crate) fn span_from(&self, start: Span) -> Span {
        Span::new(start.start, self.end.max(start.start))
    }

    pub(crate) fn expected_error<T>(&mut self, expected: &'static str) -> Result<T, ParseError> {
        let (token, span) = self.peek()?;
        let found = describe(token);
        Err(ParseError::new(
            ParseErrorKind::Syntax { expected, found },
            span,
        ))
    }

    pub(crate) fn eat(&mut self, punct: u8) -> Result<bool, ParseError> {
        let found = self.peek()?.0 == Token::Punct(punct);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(crate) fn expect(&mut self, punct: u8, expected: &'static str) -> Result<(), ParseError> {
        if self.eat(punct)? {
            Ok(())
        } else {
            self.expected_error(expected)
        }
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> Result<bool, ParseError> {
        let found = self.peek()?.0 == Token::Word(word);
        if found {
            self.next()?;
        }
        Ok(found)
    }

    pub(crate) fn expect_word(
        &mut self,
        word: &str,
        expected: &'static str,
    ) -> Result<(), ParseError> {
        if self.eat_word(word)? {
            Ok(())
        } else {
            self.expected_error(expected)
        }
    }

    pub(crate) fn expect_end(&mut self) -> Result<(), ParseError> {
        match self.peek()?.0 {
            Token::End => Ok(()),
            _ => self.expected_error("the end of the line"),
        }
    }

    pub(crate) fn word(&mut self, expected: &'static str) -> Result<(&'a str, Span), ParseError> {
        match self.peek()? {
            (Token::Word(word), span) => {
                self.next()?;
                Ok((word, span))
            }
            _ => self.expected_error(expected),
        }
    }

    pub(crate) fn int(&mut self, expected: &'static str) -> Result<(u64, Span), ParseError> {
        match self.peek()? {
            (Token::Int(n), span) => {
                self.next()?;
                Ok((n, span))
            }
            _ => self.expected_error(expected),
        }
    }

    pub(crate) fn string_literal(&mut self, expected: &'static str) -> Result<String, ParseError> {
        match self.peek()? {
            (Token::Quoted(text), span) => {
                self.next()?;
                unescape(text, span)
            }
            _ => self.expected_error(expected),
        }
    }

    pub(crate) fn handle(&mut self, kind: Kind) -> Result<(u64, &'a str, Span), ParseError> {
        if let (Token::Word(word), span) = self.peek()?
            && let Some(n) = kind.number(word)
        {
            self.next()?;
            return Ok((n, word, span));
        }
        self.expected_error(kind.expected())
    }

    /// Reads the handle of a defined entity and returns its index. A line that refers to a rejected entity is still
    /// checked, with an arbitrary index; the parser does not return such a graph.
    pub(crate) fn reference(&mut self, kind: Kind) -> Result<usize, ParseError> {
        Ok(match self.referent(kind)? {
            Referent::Entity(i) => i,
            Referent::Rejected => 0,
        })
    }

    pub(crate) fn referent(&mut self, kind: Kind) -> Result<Referent, ParseError> {
        let (n, word, span) = self.handle(kind)?;
        self.names.get(kind, n, word, span)
    }

    pub(crate) fn list<T>(
        &mut self,
        close: u8,
        expected: &'static str,
        mut item: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut out = Vec::new();
        if self.eat(close)? {
            return Ok(out);
        }
        loop {
            out.push(item(self)?);
            if self.eat(close)? {
                return Ok(out);
            }
            self.expect(b',', expected)?;
        }
    }

    pub(super) fn short(word: &str) -> String {
        shorten(word)
    }
}
