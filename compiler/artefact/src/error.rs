//! Errors of artefacts.

use tpc_diag::Diagnostic;
use tpc_ir::Code;

use crate::codes;
use crate::entry_defect::EntryDefect;

/// A defect of an artefact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtefactError {
    /// The container as a whole is invalid.
    #[error("{0}")]
    Archive(String),
    /// A zip archive that `tpc compile` did not write.
    #[error("this zip archive is not an artefact: its first entry is {first}, not `manifest.ron`")]
    Foreign {
        /// The name of the first entry, escaped and shortened, or `missing`.
        first: String,
    },
    /// An entry of the container is invalid.
    #[error("entry `{name}`: {defect}")]
    Entry {
        /// The entry's name, escaped and shortened.
        name: String,
        /// The defect.
        defect: EntryDefect,
    },
    /// The manifest is invalid.
    #[error("manifest.ron: {0}")]
    Manifest(String),
    /// The file or a section has a newer format.
    #[error("{what} has format {found}, and this tpc reads formats up to {newest}")]
    Newer {
        /// `the artefact`, or a section.
        what: String,
        /// The format found.
        found: u32,
        /// The newest supported format.
        newest: u32,
    },
    /// A section that this version of tpc does not know.
    #[error("this tpc knows no section `{0}`")]
    UnknownSection(String),
    /// The kernels are invalid.
    #[error("kernels: {0}")]
    Kernels(String),
    /// The program is invalid.
    #[error("{entry}: {what}")]
    Program {
        /// The entry.
        entry: String,
        /// The first error, with its code.
        what: String,
    },
}

impl ArtefactError {
    /// Returns the error's code.
    pub fn code(&self) -> &'static Code {
        match self {
            ArtefactError::Archive(_)
            | ArtefactError::Foreign { .. }
            | ArtefactError::Entry { .. } => &codes::DAMAGED,
            ArtefactError::Manifest(_) => &codes::MANIFEST,
            ArtefactError::Kernels(_) => &codes::KERNELS,
            ArtefactError::Newer { .. } | ArtefactError::UnknownSection(_) => &codes::NEWER,
            ArtefactError::Program { .. } => &codes::PROGRAM,
        }
    }

    /// Returns the remedy.
    pub fn help(&self) -> &'static str {
        match self {
            ArtefactError::Foreign { .. } => {
                "give a file that `tpc compile MODEL -o FILE.tpc` wrote"
            }
            ArtefactError::Archive(_) | ArtefactError::Entry { .. } => {
                "compile the model again, or fetch the artefact again from a source you trust"
            }
            ArtefactError::Newer { .. } | ArtefactError::UnknownSection(_) => {
                "update tpc, or compile the model again with this one"
            }
            ArtefactError::Manifest(_)
            | ArtefactError::Kernels(_)
            | ArtefactError::Program { .. } => {
                "compile the model again: tpc compile MODEL -o FILE.tpc"
            }
        }
    }

    /// Returns the diagnostic for the file `file`.
    pub fn diagnostic(&self, file: &str) -> Diagnostic {
        Diagnostic::new(self.code(), file, format!("{file}: {self}")).help(self.help())
    }
}
