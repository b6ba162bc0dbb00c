//! Diagnostic codes.
//!
//! A crate declares codes with [`codes!`](crate::codes), which collects them in `CODES` for `tpc explain` and the
//! book.

use std::cmp::Ordering;
use std::fmt;

/// The severity of a diagnostic, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A harmless finding.
    Note,
    /// A finding that costs something or is likely unintended.
    Warning,
    /// A failure.
    Error,
}

impl Severity {
    /// Every severity, the mildest first.
    pub const ALL: [Severity; 3] = [Severity::Note, Severity::Warning, Severity::Error];

    /// Returns the name in machine-readable output.
    pub const fn word(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A diagnostic code; compared, hashed and printed by id.
#[derive(Clone, Copy)]
pub struct Code {
    /// `TPC` and four digits, stable between versions.
    pub id: &'static str,
    /// The default severity.
    pub severity: Severity,
    /// The severity of harmless cases; `None` if every case has the same severity.
    pub milder: Option<Severity>,
    /// The finding, in one line without a full stop.
    pub title: &'static str,
    /// The cause and the consequence.
    pub doc: &'static str,
    /// An example; empty if the title suffices.
    pub example: &'static str,
    /// The cure; empty if each diagnostic carries its own.
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

    /// Returns the paragraphs of the documentation: `doc`, the example and the cure.
    pub fn paragraphs(&self) -> Vec<String> {
        let labelled = [("Example", self.example), ("Cure", self.cure)];
        let labelled = labelled.iter().filter(|(_, text)| !text.is_empty());
        let labelled = labelled.map(|(label, text)| format!("{label}: {text}"));
        std::iter::once(self.doc.to_owned())
            .chain(labelled)
            .collect()
    }

    /// Returns the number in the id: 301 for `TPC0301`.
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

/// Declares codes as statics of the given visibility, and the public list `CODES`.
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

        /// The codes of this module, in order.
        pub static CODES: &[&$crate::Code] = &[$(&$name),*];
    };
}
