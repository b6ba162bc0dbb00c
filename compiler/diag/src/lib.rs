//! Diagnostics as users see them, and the registry of their codes.

pub mod suggest;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};
use serde::Serialize;
use tpc_ir::Inst;
use tpc_ir::text::{Entity, Printed};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It works; worth knowing.
    Note,
    /// It works, but hurts or is likely unintended.
    Warning,
    /// It does not work.
    Error,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Its code; `tpc explain CODE` says more.
    pub code: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// The tensor, key, option, device or file concerned.
    pub entity: String,
    /// The cure.
    pub help: Option<String>,
    /// The line of the capture that it is about, from 1.
    #[serde(skip)]
    pub line: Option<usize>,
    /// The part of the graph's text that shows it.
    #[serde(skip)]
    pub excerpt: Option<Box<Excerpt>>,
}

/// A part of a graph's text, with what to see there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    name: &'static str,
    text: Arc<str>,
    /// Lines before it.
    before: usize,
    labels: Vec<(Range<usize>, String)>,
}

impl Excerpt {
    /// The lines of these instructions of a printed graph; `stage` is what `tpc dump` calls it.
    pub fn of(stage: &'static str, printed: &Printed, labels: &[(Inst, String)]) -> Excerpt {
        let span = |inst: Inst| printed.spans.get(Entity::Inst(inst)).unwrap_or_default();
        let spans = labels.iter().map(|(i, _)| span(*i));
        // What is shown around the labels is enough; the rest of a large graph need not be kept.
        let start = spans.clone().map(|s| s.start).min().unwrap_or(0);
        let end = spans.map(|s| s.end).max().unwrap_or(0);
        let before = printed.text[..start]
            .trim_end()
            .rfind('\n')
            .map_or(0, |n| n + 1);
        let after = printed.text[end..].find('\n').map_or(end, |n| end + n);
        let labels = labels
            .iter()
            .map(|(i, text)| {
                let s = span(*i);
                (s.start - before..s.end - before, text.clone())
            })
            .collect();
        Excerpt {
            name: stage,
            text: printed.text[before..after].into(),
            before: printed.text[..before].lines().count(),
            labels,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What to see, and where in the text.
    pub fn labels(&self) -> &[(Range<usize>, String)] {
        &self.labels
    }
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let found = self.text.read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            format!("{}.tpir", self.name),
            found.data(),
            *found.span(),
            found.line() + self.before,
            found.column(),
            found.line_count(),
        )))
    }
}

impl Diagnostic {
    /// An error.
    pub fn error(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            entity: entity.into(),
            help: None,
            line: None,
            excerpt: None,
        }
    }

    /// A warning.
    pub fn warning(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, entity, message)
        }
    }

    /// A note.
    pub fn note(
        code: &'static str,
        entity: impl Into<String>,
        message: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            severity: Severity::Note,
            ..Diagnostic::error(code, entity, message)
        }
    }

    /// The same with a cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// The same about a line of a capture.
    #[must_use]
    pub fn line(mut self, line: usize) -> Diagnostic {
        self.line = Some(line);
        self
    }

    /// The same with the part of a graph that shows it.
    #[must_use]
    pub fn excerpt(mut self, excerpt: Excerpt) -> Diagnostic {
        self.excerpt = Some(Box::new(excerpt));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.entity.is_empty() || self.message.contains(&self.entity) {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.entity, self.message)
        }
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.severity {
            Severity::Note => miette::Severity::Advice,
            Severity::Warning => miette::Severity::Warning,
            Severity::Error => miette::Severity::Error,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|h| Box::new(h) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_deref().map(|e| e as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let labels = self.excerpt.as_ref()?.labels.iter();
        Some(Box::new(labels.map(|(range, text)| {
            LabeledSpan::new_with_span(Some(text.clone()), range.clone())
        })))
    }
}

/// Whether a code concerns an option or the file itself, so that there is nothing to plan or to lint.
pub fn unusable(code: &str) -> bool {
    ("TPC0100".."TPC0150").contains(&code) || ("TPC0400".."TPC0500").contains(&code)
}
