use std::collections::HashSet;

use super::error::{ParseError, ParseErrorKind};
use super::lexer::{Token, unescape};
use super::parser::{MAX_DEPTH, Parser};
use super::spans::Span;
use crate::dims::{Dim, Symbol};
use crate::interval::Interval;
use crate::op::Attr;

const NUMBER: &str = "an integer or a symbol such as `n_tokens`";

/// A sum of products, with positive and negative terms kept apart.
struct Polynomial {
    plus: Dim,
    minus: Dim,
}

#[derive(Clone, Copy)]
enum PolynomialPrefix {
    Nothing,
    Minus,
    Int(u64),
}

impl Parser<'_> {
    pub(crate) fn dim(&mut self) -> Result<Dim, ParseError> {
        let start = self.peek()?.1;
        let p = self.polynomial(PolynomialPrefix::Nothing)?;
        p.plus.checked_sub(&p.minus).ok_or_else(|| {
            let defect = "negative or too large";
            ParseError::new(ParseErrorKind::Size { defect }, self.span_from(start))
        })
    }

    fn polynomial(&mut self, taken: PolynomialPrefix) -> Result<Polynomial, ParseError> {
        let start = self.peek()?.1;
        let mut sum = Polynomial {
            plus: Dim::ZERO,
            minus: Dim::ZERO,
        };
        let (mut first, mut negative) = match taken {
            PolynomialPrefix::Nothing => (None, self.eat(b'-')?),
            PolynomialPrefix::Minus => (None, true),
            PolynomialPrefix::Int(n) => (Some(n), false),
        };
        loop {
            let mut term = match first.take() {
                Some(n) => Dim::constant(n),
                None => self.factor()?,
            };
            let overflow = |parser: &Self| {
                let defect = "too large";
                ParseError::new(ParseErrorKind::Size { defect }, parser.span_from(start))
            };
            while self.eat(b'*')? {
                let factor = self.factor()?;
                term = term.checked_mul(&factor).ok_or_else(|| overflow(self))?;
            }
            let side = if negative {
                &mut sum.minus
            } else {
                &mut sum.plus
            };
            *side = side.checked_add(&term).ok_or_else(|| overflow(self))?;
            negative = match self.peek()?.0 {
                Token::Punct(b'+') => false,
                Token::Punct(b'-') => true,
                _ => return Ok(sum),
            };
            self.next()?;
        }
    }

    fn factor(&mut self) -> Result<Dim, ParseError> {
        let factor = match self.peek()?.0 {
            Token::Int(n) => Some(Dim::constant(n)),
            Token::Word(w) => Symbol::from_name(w).map(Dim::symbol),
            _ => None,
        };
        let Some(factor) = factor else {
            return self.expected_error(NUMBER);
        };
        self.next()?;
        Ok(factor)
    }

    pub(crate) fn range(&mut self) -> Result<Interval, ParseError> {
        let (start, span) = self.int("a range `start:len`")?;
        self.range_from(start, span)
    }

    fn range_from(&mut self, start: u64, span: Span) -> Result<Interval, ParseError> {
        self.expect(b':', "`:` and the number of indices")?;
        let (len, _) = self.int("the number of indices")?;
        if start.checked_add(len).is_none() {
            return Err(ParseError::new(
                ParseErrorKind::RangeEnd { start, len },
                self.span_from(span),
            ));
        }
        Ok(Interval { start, len })
    }

    pub(super) fn attrs(&mut self) -> Result<Vec<(String, Attr)>, ParseError> {
        let mut seen = HashSet::new();
        self.list(b'}', "`,` or `}`", |parser| {
            let (name, span) = parser.word("the name of an attribute")?;
            if !seen.insert(name) {
                let name = Parser::short(name);
                return Err(ParseError::new(
                    ParseErrorKind::RepeatedAttribute { name },
                    span,
                ));
            }
            parser.expect(b'=', "`=`")?;
            Ok((Parser::short(name), parser.attr(0)?))
        })
    }

    fn attr(&mut self, depth: usize) -> Result<Attr, ParseError> {
        let (token, start) = self.peek()?;
        match token {
            Token::Int(n) => {
                self.next()?;
                if self.peek()?.0 == Token::Punct(b':') {
                    return Ok(Attr::Interval(self.range_from(n, start)?));
                }
                self.number(PolynomialPrefix::Int(n), start)
            }
            Token::Punct(b'-') => {
                self.next()?;
                match self.peek()?.0 {
                    Token::Float(x) => {
                        self.next()?;
                        Ok(Attr::Float(-x))
                    }
                    Token::Word("inf") => {
                        self.next()?;
                        Ok(Attr::Float(f32::NEG_INFINITY))
                    }
                    _ => self.number(PolynomialPrefix::Minus, start),
                }
            }
            Token::Float(x) => {
                self.next()?;
                Ok(Attr::Float(x))
            }
            Token::Word("inf") => {
                self.next()?;
                Ok(Attr::Float(f32::INFINITY))
            }
            Token::Word("nan") => {
                self.next()?;
                Ok(Attr::Float(f32::NAN))
            }
            Token::Word(w) if Symbol::from_name(w).is_some() => {
                self.number(PolynomialPrefix::Nothing, start)
            }
            Token::Word(w) => {
                self.next()?;
                Ok(Attr::Word(Parser::short(w)))
            }
            Token::Quoted(text) => {
                self.next()?;
                Ok(Attr::Str(unescape(text, start)?))
            }
            Token::Punct(b'[') => {
                if depth == MAX_DEPTH {
                    let (what, max) = ("nested lists", MAX_DEPTH);
                    return Err(ParseError::new(ParseErrorKind::Limit { what, max }, start));
                }
                self.next()?;
                Ok(Attr::List(self.list(b']', "`,` or `]`", |parser| {
                    parser.attr(depth + 1)
                })?))
            }
            Token::Punct(_) | Token::End => self
                .expected_error("a number, a range `start:len`, a word, text in quotes or a list"),
        }
    }

    fn number(&mut self, taken: PolynomialPrefix, start: Span) -> Result<Attr, ParseError> {
        let p = self.polynomial(taken)?;
        if let Some(d) = p.plus.checked_sub(&p.minus) {
            return Ok(Attr::Dim(d));
        }
        let negative = match (p.plus.as_const(), p.minus.as_const()) {
            (Some(a), Some(b)) => 0_i64.checked_sub_unsigned(b - a),
            _ => None,
        };
        negative.map(Attr::Negative).ok_or_else(|| {
            let defect = "negative or too large";
            ParseError::new(ParseErrorKind::Size { defect }, self.span_from(start))
        })
    }
}
