use std::fmt;
use std::num::NonZeroU32;

use miette::{LabeledSpan, SourceCode};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use tpc_ir::{Code, Severity};

use crate::{Entity, Excerpt, Message};

/// A report to the user: the problem, its location, and the cure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// The code, for `tpc explain CODE`.
    #[serde(serialize_with = "as_id")]
    #[schemars(with = "String", extend("pattern" = "^TPC[0-9]{4}$"))]
    pub code: &'static Code,
    /// The severity: the code's, unless an option or a harmless case changes it.
    #[serde(serialize_with = "as_word")]
    #[schemars(with = "String", extend("enum" = Severity::ALL.map(Severity::word), "x-closed" = true))]
    pub severity: Severity,
    /// The problem, as a sentence without a full stop.
    pub message: Message,
    /// The affected tensor, key, op, option, device or file.
    pub entity: Entity,
    /// The cure.
    pub help: Option<Message>,
    /// The affected line of the capture, from 1.
    #[serde(skip)]
    pub line: Option<NonZeroU32>,
    /// An excerpt of the graph, in text form.
    #[serde(skip)]
    pub excerpt: Option<Box<Excerpt>>,
}

fn as_id<S: Serializer>(code: &Code, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(code.id)
}

fn as_word<S: Serializer>(severity: &Severity, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(severity.word())
}

impl Diagnostic {
    /// Creates a diagnostic with the code's severity.
    pub fn new(
        code: &'static Code,
        entity: impl Into<Entity>,
        message: impl Into<Message>,
    ) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity,
            message: message.into(),
            entity: entity.into(),
            help: None,
            line: None,
            excerpt: None,
        }
    }

    /// Creates a diagnostic with the code's lower severity, for harmless cases.
    pub fn milder(
        code: &'static Code,
        entity: impl Into<Entity>,
        message: impl Into<Message>,
    ) -> Diagnostic {
        let severity = code.milder.unwrap_or(code.severity);
        Diagnostic {
            severity,
            ..Diagnostic::new(code, entity, message)
        }
    }

    /// Adds a cure.
    #[must_use]
    pub fn help(mut self, help: impl Into<Message>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the affected line of a capture.
    #[must_use]
    pub fn line(mut self, line: usize) -> Diagnostic {
        self.line = u32::try_from(line).ok().and_then(NonZeroU32::new);
        self
    }

    /// Adds a graph excerpt.
    #[must_use]
    pub fn excerpt(mut self, excerpt: Excerpt) -> Diagnostic {
        self.excerpt = Some(Box::new(excerpt));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (entity, message) = (self.entity.to_string(), self.message.to_string());
        if entity.is_empty() || message.contains(&entity) {
            f.write_str(&message)
        } else {
            write!(f, "{entity}: {message}")
        }
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.code.id))
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
        let labels = self.excerpt.as_ref()?.labels().iter();
        Some(Box::new(labels.map(|(range, text)| {
            LabeledSpan::new_with_span(Some(text.clone()), range.clone())
        })))
    }
}
