//! Diagnostic codes: every code that tpc can report, declared once each.
//!
//! A crate declares its codes with [`codes!`](crate::codes), which also collects them into the crate's `CODES`. A
//! diagnostic refers to the declaration and takes its severity from it; `tpc explain` and the book print the declaration.

use std::cmp::Ordering;
use std::fmt;

/// The severity of a diagnostic, the mildest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// It works; worth knowing.
    Note,
    /// It works, but hurts or is likely unintended.
    Warning,
    /// It does not work.
    Error,
}

impl Severity {
    /// Returns the word for machine-readable output.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// The declaration of a diagnostic code. Codes compare, print and hash as their ids.
#[derive(Clone, Copy)]
pub struct Code {
    /// `TPC` and four digits, stable from version to version.
    pub id: &'static str,
    /// The severity of its diagnostics.
    pub severity: Severity,
    /// The severity of harmless cases; `None` if every case has the same severity.
    pub milder: Option<Severity>,
    /// One line: the finding, without a full stop.
    pub title: &'static str,
    /// The meaning, and the harm.
    pub doc: &'static str,
    /// An example; empty if the title suffices.
    pub example: &'static str,
    /// The remedy; empty if the diagnostic itself names one.
    pub cure: &'static str,
}

impl Code {
    const fn new(
        severity: Severity,
        id: &'static str,
        title: &'static str,
        doc: &'static str,
    ) -> Code {
        Code {
            id,
            severity,
            milder: None,
            title,
            doc,
            example: "",
            cure: "",
        }
    }

    /// Declares an error.
    pub const fn error(id: &'static str, title: &'static str, doc: &'static str) -> Code {
        Code::new(Severity::Error, id, title, doc)
    }

    /// Declares a warning.
    pub const fn warning(id: &'static str, title: &'static str, doc: &'static str) -> Code {
        Code::new(Severity::Warning, id, title, doc)
    }

    /// Declares a note.
    pub const fn note(id: &'static str, title: &'static str, doc: &'static str) -> Code {
        Code::new(Severity::Note, id, title, doc)
    }

    /// Returns the declaration with an example.
    #[must_use]
    pub const fn example(self, example: &'static str) -> Code {
        Code { example, ..self }
    }

    /// Returns the declaration with a cure.
    #[must_use]
    pub const fn cure(self, cure: &'static str) -> Code {
        Code { cure, ..self }
    }

    /// Returns the declaration with a milder severity for harmless cases.
    #[must_use]
    pub const fn with_milder_severity(self, severity: Severity) -> Code {
        Code {
            milder: Some(severity),
            ..self
        }
    }

    /// Returns the documentation in paragraphs: the meaning, then the example and the cure if present.
    pub fn paragraphs(&self) -> Vec<String> {
        let labelled = [("Example", self.example), ("Cure", self.cure)];
        let labelled = labelled.iter().filter(|(_, text)| !text.is_empty());
        let labelled = labelled.map(|(label, text)| format!("{label}: {text}"));
        std::iter::once(self.doc.to_owned())
            .chain(labelled)
            .collect()
    }

    /// Returns the number of the id: 301 of `TPC0301`. Ranges of numbers are the sections of the catalogue.
    pub fn number(&self) -> Option<u16> {
        self.id.strip_prefix("TPC")?.parse().ok()
    }
}

impl PartialEq for Code {
    fn eq(&self, other: &Code) -> bool {
        self.id == other.id
    }
}

impl Eq for Code {}

impl PartialEq<str> for Code {
    fn eq(&self, id: &str) -> bool {
        self.id == id
    }
}

impl Ord for Code {
    fn cmp(&self, other: &Code) -> Ordering {
        self.id.cmp(other.id)
    }
}

impl PartialOrd for Code {
    fn partial_cmp(&self, other: &Code) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl std::hash::Hash for Code {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id)
    }
}

/// Declares codes, each as a static of the visibility given first, and the public list of all of them, `CODES`.
///
/// ```
/// mod codes {
///     tpc_ir::codes! {
///         pub(super) static;
///
///         CUT = error("TPC0122", "the file is cut short", "The data of a tensor end after the file.")
///             .cure("fetch the file again.");
///     }
/// }
/// assert_eq!(codes::CODES[0].id, codes::CUT.id);
/// ```
#[macro_export]
macro_rules! codes {
    ($vis:vis static; $($name:ident = $severity:ident($id:literal, $title:literal, $doc:literal $(,)?)$(.$part:ident($value:expr))*;)*) => {
        $(
            #[doc = $title]
            $vis static $name: $crate::Code = $crate::Code::$severity($id, $title, $doc)$(.$part($value))*;
        )*

        /// The codes declared here, in order.
        pub static CODES: &[&$crate::Code] = &[$(&$name),*];
    };
}
