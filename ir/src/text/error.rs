use std::fmt;

use super::codes;
use super::spans::Span;
use crate::code::Code;
use crate::op::AttrError;

/// The maximum length of a text in bytes: 256 MiB.
pub const MAX_TEXT: usize = 256 << 20;

/// One defect of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The defect.
    pub kind: ParseErrorKind,
    /// The position in the text.
    pub span: Span,
}

impl ParseError {
    pub(crate) fn new(kind: impl Into<ParseErrorKind>, span: Span) -> ParseError {
        ParseError {
            kind: kind.into(),
            span,
        }
    }

    /// Returns the code of the defect (`TPC0205`).
    pub const fn code(&self) -> &'static Code {
        self.kind.code()
    }

    /// Returns advice on how to correct the text.
    pub fn help(&self) -> String {
        self.kind.help()
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for ParseError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.kind)
    }
}

/// The kinds of defects. [`super::CODES`] explains their codes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the message of each variant names its fields")]
pub enum ParseErrorKind {
    #[error("not a tpir text: expected the line `tpir 1` first, found {found}")]
    NotTpir { found: String },
    #[error("tpir version {found} is not supported: expected 1")]
    Version { found: u64 },
    #[error("unexpected character {found:?}")]
    Character { found: char },
    #[error("bad text in quotes: {defect}")]
    Quoted { defect: &'static str },
    #[error("bad number: {defect}")]
    Number { defect: &'static str },
    #[error("expected {expected}, found {found}")]
    Syntax {
        expected: &'static str,
        found: String,
    },
    #[error("no statement begins with {found}")]
    Statement { found: String },
    #[error("unknown element type `{found}`")]
    ElementType { found: String },
    #[error("bad size: {defect}")]
    Size { defect: &'static str },
    #[error("{what} `{handle}` is not defined above this line")]
    Undefined { what: &'static str, handle: String },
    #[error("{what} `{handle}` is defined twice")]
    Redefined { what: &'static str, handle: String },
    #[error("unknown op `{found}`")]
    UnknownOp {
        found: String,
        nearest: Option<&'static str>,
    },
    #[error("bad attributes of `{op}`: {source}")]
    Attributes { op: &'static str, source: AttrError },
    #[error("attribute `{name}` is given twice")]
    RepeatedAttribute { name: String },
    #[error("too many {what}: at most {max}")]
    Limit { what: &'static str, max: usize },
    #[error("{div} does not divide the size {size} of the class")]
    ClassPart { size: u64, div: u64 },
    #[error("the range {start}:{len} ends beyond 2^64 - 1")]
    RangeEnd { start: u64, len: u64 },
    #[error("the line `graph` {defect}")]
    GraphLine { defect: &'static str },
    #[error("bad sharding: {defect}")]
    Sharding { defect: &'static str },
    #[error("expected 1 to 4 sizes, found {found}")]
    Rank { found: usize },
    #[error("the text has {found} bytes, more than the maximum of {MAX_TEXT}")]
    TooLong { found: usize },
}

impl ParseErrorKind {
    /// Returns the code of the defect (`TPC0205`).
    pub const fn code(&self) -> &'static Code {
        match self {
            ParseErrorKind::NotTpir { .. } => &codes::NOT_TPIR,
            ParseErrorKind::Version { .. } => &codes::VERSION,
            ParseErrorKind::Character { .. } => &codes::CHARACTER,
            ParseErrorKind::Quoted { .. } => &codes::QUOTED,
            ParseErrorKind::Number { .. } => &codes::NUMBER,
            ParseErrorKind::Syntax { .. } => &codes::SYNTAX,
            ParseErrorKind::Statement { .. } => &codes::STATEMENT,
            ParseErrorKind::ElementType { .. } => &codes::ELEMENT_TYPE,
            ParseErrorKind::Size { .. } => &codes::SIZE,
            ParseErrorKind::Undefined { .. } => &codes::UNDEFINED,
            ParseErrorKind::Redefined { .. } => &codes::REDEFINED,
            ParseErrorKind::UnknownOp { .. } => &codes::UNKNOWN_OP,
            ParseErrorKind::Attributes { .. } | ParseErrorKind::RepeatedAttribute { .. } => {
                &codes::ATTRIBUTES
            }
            ParseErrorKind::Limit { .. } => &codes::LIMIT,
            ParseErrorKind::ClassPart { .. } => &codes::CLASS_PART,
            ParseErrorKind::RangeEnd { .. } => &codes::RANGE_END,
            ParseErrorKind::GraphLine { .. } => &codes::GRAPH_LINE,
            ParseErrorKind::Sharding { .. } => &codes::SHARDING,
            ParseErrorKind::Rank { .. } => &codes::RANK,
            ParseErrorKind::TooLong { .. } => &codes::TOO_LONG,
        }
    }

    /// Returns advice on how to correct the text.
    pub fn help(&self) -> String {
        match self {
            ParseErrorKind::NotTpir { .. } => {
                "give a text printed by `tpc`; only comments may precede its first line".to_owned()
            }
            ParseErrorKind::Version { .. } => {
                "print the graph again with this version of `tpc`".to_owned()
            }
            ParseErrorKind::Character { .. } => {
                "outside quotes and comments there are only letters, digits and `_ : , = @ * + - / ( ) [ ] { }`"
                    .to_owned()
            }
            ParseErrorKind::Quoted { .. } => {
                "close the quotes on the same line; the escapes are \\\" \\\\ \\n and \\u{hex}".to_owned()
            }
            ParseErrorKind::Number { .. } => {
                "integers have 64 bits; other numbers are 32-bit floats such as 0.5 and 1e-5".to_owned()
            }
            ParseErrorKind::Syntax { expected, .. } => format!("write {expected} here"),
            ParseErrorKind::Statement { .. } => {
                "a line begins with graph, device, group, class, layer, output, or a value to define (v0); in \
                programs also with shape, arena, buffer, home, launch, phase or queue"
                    .to_owned()
            }
            ParseErrorKind::ElementType { .. } => {
                "use an element type of GGUF, in lower case: f32, f16, bf16, i32, q4_k, q8_0".to_owned()
            }
            ParseErrorKind::Size { .. } => {
                "a size is a sum of products of integers and symbols, such as 32*n_tokens + 3".to_owned()
            }
            ParseErrorKind::Undefined { .. } => {
                "define it above; values are defined before they are used".to_owned()
            }
            ParseErrorKind::Redefined { .. } => "give one of the definitions another number".to_owned(),
            ParseErrorKind::UnknownOp {
                nearest: Some(name),
                ..
            } => format!("did you mean `{name}`?"),
            ParseErrorKind::UnknownOp { nearest: None, .. } => {
                "`tpc explain` lists the ops".to_owned()
            }
            ParseErrorKind::Attributes {
                source: AttrError::Missing(name),
                ..
            } => format!("add {{{name} = …}} after the operands"),
            ParseErrorKind::Attributes {
                source: AttrError::Kind { expected, .. },
                ..
            } => format!("give {expected}"),
            ParseErrorKind::Attributes {
                source: AttrError::Unknown(_),
                ..
            } => "remove the attribute".to_owned(),
            ParseErrorKind::RepeatedAttribute { .. } => "remove one of the definitions".to_owned(),
            ParseErrorKind::Limit { .. } => "remove redundant nesting or leaves".to_owned(),
            ParseErrorKind::ClassPart { .. } => {
                "the divisor must divide the size of the class; `c0/4` is `c0` without a minor factor of \
                4 indices".to_owned()
            }
            ParseErrorKind::RangeEnd { .. } => {
                "a range is `start:len`, not `start:end`".to_owned()
            }
            ParseErrorKind::GraphLine { .. } => {
                "write the line `graph \"name\"` once, below `tpir 1`".to_owned()
            }
            ParseErrorKind::Sharding { .. } => {
                "write `split(0: c0*128, 1: c1)`, `split(0: c0 granule 256)`, `partial` or `owner_masked(c0)`".to_owned()
            }
            ParseErrorKind::Rank { .. } => "tensors have four axes; trailing sizes of 1 may be left out".to_owned(),
            ParseErrorKind::TooLong { .. } => "split the graph into several texts".to_owned(),
        }
    }
}
