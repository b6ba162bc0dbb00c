//! Errors in topology files, with line, column and correction.

use std::fmt;

use ron::Error as Ron;
use ron::error::SpannedError;
use ron::extensions::Extensions;
use ron::value::RawValue;
use serde::Deserialize;

/// An error in a topology file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// The mistake.
    pub message: String,
    /// The correction, if known.
    pub cure: Option<String>,
}

impl fmt::Display for TopologyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TopologyError {
            line,
            column,
            message,
            ..
        } = self;
        write!(f, "line {line}, column {column}: {message}")
    }
}

impl std::error::Error for TopologyError {}

impl TopologyError {
    pub(super) fn cure(self, cure: impl Into<String>) -> TopologyError {
        TopologyError {
            cure: Some(cure.into()),
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'a> {
    file: &'a str,
    offset: usize,
    len: usize,
}

impl<'a> Place<'a> {
    pub(super) const fn whole(file: &'a str) -> Place<'a> {
        Place {
            file,
            offset: 0,
            len: file.len(),
        }
    }

    pub(super) fn text(self) -> &'a str {
        &self.file[self.offset..self.offset + self.len]
    }

    pub(super) const fn span(self) -> (usize, usize) {
        (self.offset, self.offset + self.len)
    }

    pub(super) fn of(self, raw: &RawValue) -> Place<'a> {
        // A raw value borrows the file's text, so the difference of the addresses is its offset.
        let value = raw.trim().get_ron();
        let offset = (value.as_ptr() as usize).wrapping_sub(self.file.as_ptr() as usize);
        match self.file.get(offset..offset.saturating_add(value.len())) {
            Some(_) => Place {
                file: self.file,
                offset,
                len: value.len(),
            },
            None => self,
        }
    }

    /// Returns the place of a field's value, or of the entry if the field is absent.
    pub(super) fn of_field(self, raw: Option<&RawValue>) -> Place<'a> {
        raw.map_or(self, |r| self.of(r))
    }

    pub(super) fn wrong(self, message: impl Into<String>) -> TopologyError {
        let (line, column) = position(&self.file[..self.offset]);
        TopologyError {
            line,
            column,
            message: message.into(),
            cure: None,
        }
    }
}

/// Computes line and column of a text's end, from 1.
fn position(before: &str) -> (usize, usize) {
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or_default();
    (line, last.chars().count() + 1)
}

pub(super) fn parse<'a, T: Deserialize<'a>>(at: Place<'a>) -> Result<T, TopologyError> {
    let options = ron::Options::default().with_default_extension(Extensions::IMPLICIT_SOME);
    options
        .from_str(at.text())
        .map_err(|e| syntax_error(at, &e))
}

/// Converts a RON error whose position is relative to `at`.
fn syntax_error(at: Place<'_>, e: &SpannedError) -> TopologyError {
    let (line, column) = position(&at.file[..at.offset]);
    let start = &e.span.start;
    let (line, column) = match start.line {
        0 | 1 => (line, column + start.col.saturating_sub(1)),
        n => (line + n - 1, start.col),
    };
    let (message, cure) = message_of(&e.code);
    TopologyError {
        line,
        column,
        message,
        cure,
    }
}

fn message_of(code: &Ron) -> (String, Option<String>) {
    let list = |names: &[&str]| names.join(", ");
    match code {
        Ron::NoSuchStructField {
            expected, found, ..
        } => {
            let name = tpc_diag::suggest::shorten(found);
            let cure = match synonym(found)
                .or_else(|| tpc_diag::suggest::nearest(found, expected.iter().copied()))
            {
                Some(near) if expected.contains(&near) => format!("did you mean `{near}`? "),
                _ => String::new(),
            };
            (
                format!("unknown field `{name}`"),
                Some(format!("{cure}the fields are {}", list(expected))),
            )
        }
        Ron::MissingStructField { field, .. } => (
            format!("the field `{field}` is missing"),
            Some(format!(
                "add `{field}: …`; `tpc explain TPC0403` shows a file"
            )),
        ),
        Ron::DuplicateStructField { field, .. } => (
            format!("the field `{field}` appears twice"),
            Some("remove one of them".to_owned()),
        ),
        Ron::ExpectedDifferentStructName { expected, found } => (
            format!(
                "found `{}`, expected `{expected}`",
                tpc_diag::suggest::shorten(found)
            ),
            Some(format!("write `{expected}(…)`, or only the parentheses")),
        ),
        Ron::ExpectedNamedStructLike(_) | Ron::ExpectedStructLike => (
            "expected `(`".to_owned(),
            Some("a file is `Topology(devices: […])`, a device `(card: \"RTX 3090\")`".to_owned()),
        ),
        Ron::ExpectedMapColon => (
            "expected `:` after the name of a field".to_owned(),
            Some("write `field: value`; RON uses `:`, not `=`".to_owned()),
        ),
        Ron::ExpectedStructLikeEnd | Ron::ExpectedComma => (
            "expected `,` or `)`".to_owned(),
            Some("separate fields and entries by `,`".to_owned()),
        ),
        Ron::ExpectedArray => (
            "expected a list".to_owned(),
            Some("write `[…]` around the entries".to_owned()),
        ),
        Ron::Eof => (
            "the file is incomplete".to_owned(),
            Some("add the missing `)` and `]`".to_owned()),
        ),
        other => (lower_first(&other.to_string()), None),
    }
}

fn synonym(found: &str) -> Option<&'static str> {
    Some(match found.to_lowercase().as_str() {
        "vram" | "mem" | "memory_gb" | "memory_gib" | "memory_bytes" | "size" => "memory",
        "bw" | "memory_bandwidth" | "bandwidth_gbs" => "bandwidth",
        "tflops" | "fp16" | "compute" => "flops",
        "latency" | "latency_ms" => "latency_us",
        "gpu" | "model" | "type" => "card",
        "gpus" | "device" => "devices",
        "n" | "number" => "count",
        "from" => "a",
        "to" => "b",
        _ => return None,
    })
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map_or_else(String::new, |c| c.to_lowercase().chain(chars).collect())
}
