use std::collections::HashMap;

use super::error::{ParseError, ParseErrorKind};
use super::lexer::shorten;
use super::spans::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Group,
    Class,
    Value,
    Arena,
    Buffer,
    Launch,
}

impl Kind {
    pub(crate) const ALL: [Kind; 7] = [
        Kind::Device,
        Kind::Group,
        Kind::Class,
        Kind::Value,
        Kind::Arena,
        Kind::Buffer,
        Kind::Launch,
    ];

    const fn prefix(self) -> &'static str {
        match self {
            Kind::Device => "dev",
            Kind::Group => "tp",
            Kind::Class => "c",
            Kind::Value => "v",
            Kind::Arena => "a",
            Kind::Buffer => "b",
            Kind::Launch => "l",
        }
    }

    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Kind::Device => "device",
            Kind::Group => "group",
            Kind::Class => "class",
            Kind::Value => "value",
            Kind::Arena => "arena",
            Kind::Buffer => "buffer",
            Kind::Launch => "launch",
        }
    }

    pub(crate) const fn expected(self) -> &'static str {
        match self {
            Kind::Device => "a device such as `dev0`",
            Kind::Group => "a group such as `tp0`",
            Kind::Class => "a class such as `c0`",
            Kind::Value => "a value such as `v0`",
            Kind::Arena => "an arena such as `a0`",
            Kind::Buffer => "a buffer such as `b0`",
            Kind::Launch => "a launch such as `l0`",
        }
    }

    /// Returns the number in a handle of this kind; `None` beyond 64 bits.
    pub(crate) fn number(self, word: &str) -> Option<u64> {
        let digits = word.strip_prefix(self.prefix())?;
        let numeric = digits.bytes().all(|b| b.is_ascii_digit());
        numeric.then(|| digits.parse().ok()).flatten()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Referent {
    Entity(usize),
    /// An entity whose definition was rejected and reported.
    Rejected,
}

#[derive(Debug, Default)]
pub(crate) struct Names {
    tables: [HashMap<u64, Referent>; Kind::ALL.len()],
}

impl Names {
    pub(crate) fn get(
        &self,
        kind: Kind,
        number: u64,
        word: &str,
        span: Span,
    ) -> Result<Referent, ParseError> {
        let known = self.tables[kind as usize].get(&number).copied();
        known.ok_or_else(|| {
            let (what, handle) = (kind.noun(), shorten(word));
            ParseError::new(ParseErrorKind::Undefined { what, handle }, span)
        })
    }

    pub(crate) fn define(
        &mut self,
        kind: Kind,
        number: u64,
        referent: Referent,
        span: Span,
    ) -> Result<(), ParseError> {
        if self.tables[kind as usize].contains_key(&number) {
            let (what, handle) = (kind.noun(), format!("{}{number}", kind.prefix()));
            return Err(ParseError::new(
                ParseErrorKind::Redefined { what, handle },
                span,
            ));
        }
        self.tables[kind as usize].insert(number, referent);
        Ok(())
    }

    /// Records a rejected definition, unless another line defines the handle.
    pub(crate) fn reject(&mut self, kind: Kind, number: u64) {
        self.tables[kind as usize]
            .entry(number)
            .or_insert(Referent::Rejected);
    }
}
