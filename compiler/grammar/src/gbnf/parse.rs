//! Parser of GBNF, llama.cpp's format of grammars.

use std::collections::HashMap;

use tpc_diag::Diagnostic;

use super::chars::CharSet;
use super::rules::{Expr, ExprId, RuleId, Rules};
use crate::errors::{invalid, too_large};
use crate::limits;

const NAME: &str = "GBNF grammar";

/// Parses a grammar.
///
/// # Errors
/// Returns TPC0596 with the line and column of an error, TPC0597 if brackets are nested too deeply.
pub(super) fn parse(text: &str) -> Result<Rules, Diagnostic> {
    let mut parser = Parser {
        rest: text,
        text,
        exprs: Vec::new(),
        names: Vec::new(),
        rules: HashMap::new(),
        bodies: Vec::new(),
        depth: 0,
    };
    parser.space(true);
    while !parser.rest.is_empty() {
        parser.rule()?;
    }
    parser.finish()
}

struct Parser<'t> {
    rest: &'t str,
    text: &'t str,
    exprs: Vec<Expr>,
    /// The name of each rule, and the text from its first use.
    names: Vec<(&'t str, &'t str)>,
    rules: HashMap<&'t str, RuleId>,
    bodies: Vec<Option<ExprId>>,
    depth: usize,
}

impl<'t> Parser<'t> {
    fn finish(self) -> Result<Rules, Diagnostic> {
        let mut bodies = Vec::with_capacity(self.bodies.len());
        for (body, (name, at)) in self.bodies.iter().zip(&self.names) {
            let Some(body) = body else {
                return Err(self.wrong(at, &format!("the rule {name} is not defined")));
            };
            bodies.push(*body);
        }
        let Some(&root) = self.rules.get("root") else {
            let help = "define it, such as root ::= \"yes\" | \"no\"";
            return Err(invalid(NAME, "the rule root is not defined", help));
        };
        Ok(Rules {
            exprs: self.exprs,
            bodies,
            root,
        })
    }

    /// Returns the error at the start of `at`, a suffix of the text.
    fn wrong(&self, at: &str, message: &str) -> Diagnostic {
        let before = &self.text[..self.text.len() - at.len()];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        let column = before[start..].chars().count() + 1;
        let message = format!("line {line}, column {column}: {message}");
        invalid(NAME, &message, "correct the grammar at this place")
    }

    fn expected(&self, expected: &str) -> Diagnostic {
        self.wrong(self.rest, &format!("expected {expected}"))
    }

    fn eat(&mut self, prefix: &str) -> bool {
        let rest = self.rest.strip_prefix(prefix);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Skips spaces and comments, and line ends if `lines` is true.
    fn space(&mut self, lines: bool) {
        loop {
            let blank = |c: char| c == ' ' || c == '\t' || lines && (c == '\n' || c == '\r');
            self.rest = self.rest.trim_start_matches(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            let end = self.rest.find(['\n', '\r']);
            self.rest = &self.rest[end.unwrap_or(self.rest.len())..];
        }
    }

    fn name(&mut self) -> Result<&'t str, Diagnostic> {
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let end = self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() {
            return Err(self.expected("the name of a rule"));
        }
        self.rest = rest;
        Ok(name)
    }

    /// Returns the rule of a name at its use or definition `at`.
    fn rule_id(&mut self, name: &'t str, at: &'t str) -> RuleId {
        *self.rules.entry(name).or_insert_with(|| {
            self.names.push((name, at));
            self.bodies.push(None);
            self.bodies.len() - 1
        })
    }

    fn push(&mut self, expr: Expr) -> ExprId {
        self.exprs.push(expr);
        self.exprs.len() - 1
    }

    fn rule(&mut self) -> Result<(), Diagnostic> {
        let at = self.rest;
        let name = self.name()?;
        let id = self.rule_id(name, at);
        if self.bodies[id].is_some() {
            return Err(self.wrong(at, &format!("the rule {name} is defined twice")));
        }
        self.space(false);
        if !self.eat("::=") {
            return Err(self.expected("::="));
        }
        self.space(true);
        let body = self.alternatives(false)?;
        self.bodies[id] = Some(body);
        if !self.rest.is_empty() && !self.rest.starts_with(['\n', '\r']) {
            return Err(self.expected("the end of the line"));
        }
        self.space(true);
        Ok(())
    }

    fn alternatives(&mut self, nested: bool) -> Result<ExprId, Diagnostic> {
        let mut items = vec![self.sequence(nested)?];
        while self.eat("|") {
            self.space(true);
            items.push(self.sequence(nested)?);
        }
        Ok(match items.as_slice() {
            [one] => *one,
            _ => self.push(Expr::Alt(items)),
        })
    }

    fn sequence(&mut self, nested: bool) -> Result<ExprId, Diagnostic> {
        let mut items = Vec::new();
        while let Some(first) = self.rest.chars().next() {
            let item = match first {
                '"' => self.literal()?,
                '[' => self.class()?,
                '(' => self.group()?,
                '.' => {
                    self.next();
                    self.push(Expr::Class(CharSet::default().complement()))
                }
                '<' | '!' => {
                    return Err(self.wrong(self.rest, "references to tokens are not supported"));
                }
                c if c.is_ascii_alphanumeric() || c == '_' => {
                    let at = self.rest;
                    let name = self.name()?;
                    let rule = self.rule_id(name, at);
                    self.push(Expr::Rule(rule))
                }
                _ => break,
            };
            let item = self.repeated(item)?;
            items.push(item);
            self.space(nested);
        }
        Ok(match items.as_slice() {
            [one] => *one,
            _ => self.push(Expr::Seq(items)),
        })
    }

    fn group(&mut self) -> Result<ExprId, Diagnostic> {
        self.depth += 1;
        if self.depth > limits::DEEPEST {
            let message = format!("brackets are nested more than {} levels", limits::DEEPEST);
            return Err(too_large(NAME, &message));
        }
        self.next();
        self.space(true);
        let out = self.alternatives(true)?;
        if !self.eat(")") {
            return Err(self.expected(")"));
        }
        self.depth -= 1;
        Ok(out)
    }

    /// Parses the repetitions after an item.
    fn repeated(&mut self, item: ExprId) -> Result<ExprId, Diagnostic> {
        let mut out = item;
        // Repetitions of repetitions nest, too.
        for _ in 0..limits::DEEPEST {
            let (min, max) = match self.rest.chars().next() {
                Some('{') => self.bounds()?,
                _ if self.eat("*") => (0, None),
                _ if self.eat("+") => (1, None),
                _ if self.eat("?") => (0, Some(1)),
                _ => return Ok(out),
            };
            out = self.push(match max {
                Some(0) => Expr::Seq(Vec::new()),
                _ => Expr::Repeat {
                    item: out,
                    min,
                    max,
                },
            });
        }
        let message = format!(
            "more than {} repetitions follow each other",
            limits::DEEPEST
        );
        Err(too_large(NAME, &message))
    }

    /// Parses `{m}`, `{m,}` or `{m,n}`.
    fn bounds(&mut self) -> Result<(u32, Option<u32>), Diagnostic> {
        let at = self.rest;
        self.next();
        self.space(true);
        let min = self.number()?;
        self.space(true);
        let max = match self.eat(",") {
            false => Some(min),
            true => {
                self.space(true);
                match self.rest.starts_with('}') {
                    true => None,
                    false => Some(self.number()?),
                }
            }
        };
        self.space(true);
        if !self.eat("}") {
            return Err(self.expected("}"));
        }
        if max.is_some_and(|max| max < min) {
            return Err(self.wrong(at, "the upper bound is less than the lower bound"));
        }
        Ok((min, max))
    }

    fn number(&mut self) -> Result<u32, Diagnostic> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if digits.is_empty() {
            return Err(self.expected("a number"));
        }
        let number = digits.parse().ok();
        let number = number.filter(|&n: &u32| f64::from(n) <= limits::MOST_REPEATED);
        let Some(number) = number else {
            let message = format!(
                "{digits} repetitions; the limit is {}",
                limits::MOST_REPEATED
            );
            return Err(too_large(NAME, &message));
        };
        self.rest = rest;
        Ok(number)
    }

    fn literal(&mut self) -> Result<ExprId, Diagnostic> {
        self.next();
        let mut chars = Vec::new();
        while !self.eat("\"") {
            let c = self.character("\"")?;
            chars.push(self.push(Expr::Class(CharSet::of(c))));
        }
        Ok(match chars.as_slice() {
            [one] => *one,
            _ => self.push(Expr::Seq(chars)),
        })
    }

    fn class(&mut self) -> Result<ExprId, Diagnostic> {
        let at = self.rest;
        self.next();
        let negative = self.eat("^");
        let mut ranges = Vec::new();
        while !self.eat("]") {
            let first = self.character("]")?;
            let mut last = first;
            if self.rest.starts_with('-') && !self.rest.starts_with("-]") {
                self.next();
                last = self.character("]")?;
            }
            if last < first {
                return Err(self.wrong(at, "a range of characters ends before it begins"));
            }
            ranges.push((u32::from(first), u32::from(last)));
        }
        let set = CharSet::new(ranges);
        let set = if negative { set.complement() } else { set };
        if set.is_empty() {
            return Err(self.wrong(at, "the set of characters is empty"));
        }
        Ok(self.push(Expr::Class(set)))
    }

    /// Parses a character or an escape, up to the closing `end`.
    fn character(&mut self, end: &str) -> Result<char, Diagnostic> {
        let at = self.rest;
        let Some(c) = self.next() else {
            return Err(self.expected(end));
        };
        if c != '\\' {
            return Ok(c);
        }
        let digits = match self.next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            Some('t') => return Ok('\t'),
            Some('r') => return Ok('\r'),
            Some('n') => return Ok('\n'),
            Some(c @ ('\\' | '"' | '[' | ']' | '-' | '^' | '/')) => return Ok(c),
            _ => return Err(self.wrong(at, "unknown escape")),
        };
        let code = self.rest.get(..digits);
        let code = code.filter(|c| c.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = code.and_then(|c| u32::from_str_radix(c, 16).ok());
        let Some(c) = code.and_then(char::from_u32) else {
            return Err(self.wrong(at, "the escape names no character"));
        };
        self.rest = &self.rest[digits..];
        Ok(c)
    }
}
