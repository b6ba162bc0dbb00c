//! Attributes of an op in text: `{axis = 1, eps = 1e-5}`.

use std::fmt;

use crate::dims::Dim;
use crate::interval::Interval;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// An integer or symbolic size.
    Dim(Dim),
    /// A negative integer.
    Negative(i64),
    /// A number with a fraction, `inf` or `nan`.
    Float(f32),
    /// An interval of indices, `start:len`.
    Interval(Interval),
    /// A keyword.
    Word(String),
    /// Text in quotes.
    Str(String),
    /// `[…]`.
    List(Vec<Attr>),
}

/// Escapes quotes, backslashes and control characters.
pub fn quoted(s: &str) -> String {
    let mut out = String::with_capacity(s.len() + 2);
    out.push('"');
    for c in s.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

impl fmt::Display for Attr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Attr::Dim(d) => d.fmt(f),
            Attr::Negative(n) => n.fmt(f),
            Attr::Float(x) if x.is_nan() => f.write_str("nan"),
            Attr::Float(x) => write!(f, "{x:?}"),
            Attr::Interval(r) => write!(f, "{}:{}", r.start, r.len),
            Attr::Word(w) => f.write_str(w),
            Attr::Str(s) => f.write_str(&quoted(s)),
            Attr::List(l) => {
                f.write_str("[")?;
                for (i, a) in l.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    a.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}

impl From<u64> for Attr {
    fn from(n: u64) -> Attr {
        Attr::Dim(Dim::constant(n))
    }
}

impl From<&Dim> for Attr {
    fn from(d: &Dim) -> Attr {
        Attr::Dim(d.clone())
    }
}

impl From<&[Interval]> for Attr {
    fn from(r: &[Interval]) -> Attr {
        Attr::List(r.iter().map(|&r| Attr::Interval(r)).collect())
    }
}

/// Named attributes in print order.
pub type Attrs = Vec<(&'static str, Attr)>;

/// An error in the attributes of an op.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttrError {
    /// A required attribute is missing.
    #[error("attribute `{0}` is missing")]
    Missing(&'static str),
    /// An attribute has the wrong kind.
    #[error("attribute `{name}` must be {expected}")]
    Kind {
        /// The attribute.
        name: &'static str,
        /// The expected kind.
        expected: &'static str,
    },
    /// The op does not have this attribute.
    #[error("unknown attribute `{0}`")]
    Unknown(String),
}

/// A reader of an op's attributes.
#[derive(Debug)]
pub struct AttrReader {
    attrs: Vec<(String, Attr)>,
}

impl AttrReader {
    /// Returns a reader.
    pub fn new(attrs: Vec<(String, Attr)>) -> AttrReader {
        AttrReader { attrs }
    }

    /// Checks that every attribute was read.
    ///
    /// # Errors
    /// Returns [`AttrError::Unknown`] with the first unread name.
    pub fn finish(self) -> Result<(), AttrError> {
        self.attrs
            .into_iter()
            .next()
            .map_or(Ok(()), |(n, _)| Err(AttrError::Unknown(n)))
    }

    /// Takes an attribute, if given.
    pub fn take(&mut self, name: &'static str) -> Option<Attr> {
        let i = self.attrs.iter().position(|(n, _)| n == name)?;
        Some(self.attrs.remove(i).1)
    }

    fn take_typed<T>(
        &mut self,
        name: &'static str,
        expected: &'static str,
        f: impl FnOnce(Attr) -> Option<T>,
    ) -> Result<Option<T>, AttrError> {
        self.take(name)
            .map(|a| f(a).ok_or(AttrError::Kind { name, expected }))
            .transpose()
    }

    /// Reads a number; accepts an integer.
    pub fn float(&mut self, name: &'static str) -> Result<Option<f32>, AttrError> {
        self.take_typed(name, "a number", |a| match a {
            Attr::Float(x) => Some(x),
            Attr::Dim(d) => d.as_const().map(|n| n as f32),
            Attr::Negative(n) => Some(n as f32),
            Attr::Word(w) if w == "inf" => Some(f32::INFINITY),
            Attr::Word(w) if w == "nan" => Some(f32::NAN),
            _ => None,
        })
    }

    /// Reads a size.
    pub fn dim(&mut self, name: &'static str) -> Result<Option<Dim>, AttrError> {
        self.take_typed(name, "a size", dim)
    }

    /// Reads a non-negative integer.
    pub fn int(&mut self, name: &'static str) -> Result<Option<u64>, AttrError> {
        self.take_typed(name, "a non-negative integer", |a| dim(a)?.as_const())
    }

    /// Reads a keyword.
    pub fn word(&mut self, name: &'static str) -> Result<Option<String>, AttrError> {
        self.take_typed(name, "a word", |a| match a {
            Attr::Word(w) => Some(w),
            _ => None,
        })
    }

    /// Reads quoted text.
    pub fn str(&mut self, name: &'static str) -> Result<Option<String>, AttrError> {
        self.take_typed(name, "text in quotes", |a| match a {
            Attr::Str(w) => Some(w),
            _ => None,
        })
    }

    /// Reads a list of sizes.
    pub fn dims(&mut self, name: &'static str) -> Result<Option<Vec<Dim>>, AttrError> {
        self.take_typed(name, "a list of sizes", |a| {
            list(a)?.into_iter().map(dim).collect()
        })
    }

    /// Reads an interval `start:len`.
    pub fn interval(&mut self, name: &'static str) -> Result<Option<Interval>, AttrError> {
        self.take_typed(name, "a range `start:len`", |a| interval(&a))
    }

    /// Reads a list of intervals.
    pub fn intervals(&mut self, name: &'static str) -> Result<Option<Vec<Interval>>, AttrError> {
        self.take_typed(name, "a list of ranges `start:len`", intervals)
    }

    /// Reads a list of lists of intervals.
    pub fn interval_lists(
        &mut self,
        name: &'static str,
    ) -> Result<Option<Vec<Vec<Interval>>>, AttrError> {
        self.take_typed(name, "a list of lists of ranges `start:len`", |a| {
            list(a)?.into_iter().map(intervals).collect()
        })
    }
}

fn dim(a: Attr) -> Option<Dim> {
    match a {
        Attr::Dim(d) => Some(d),
        _ => None,
    }
}

fn interval(a: &Attr) -> Option<Interval> {
    match a {
        Attr::Interval(r) => Some(*r),
        _ => None,
    }
}

fn list(a: Attr) -> Option<Vec<Attr>> {
    match a {
        Attr::List(l) => Some(l),
        _ => None,
    }
}

fn intervals(a: Attr) -> Option<Vec<Interval>> {
    list(a)?.iter().map(interval).collect()
}

pub(super) fn require<T>(name: &'static str, value: Option<T>) -> Result<T, AttrError> {
    value.ok_or(AttrError::Missing(name))
}
