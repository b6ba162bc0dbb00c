//! What is wrong with an artefact.

use tpc_diag::Diagnostic;
use tpc_ir::Code;

use crate::codes;
use crate::entry_defect::EntryDefect;

/// A defect of an artefact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtefactError {
    /// The container, as a whole.
    #[error("{0}")]
    Archive(String),
    /// An entry of the container.
    #[error("entry `{name}`: {defect}")]
    Entry {
        /// Its name, escaped and shortened.
        name: String,
        /// What is wrong with it.
        defect: EntryDefect,
    },
    /// The manifest.
    #[error("manifest.ron: {0}")]
    Manifest(String),
    /// The format of the file, or of a section.
    #[error("{what} has format {found}, and this tpc reads formats up to {newest}")]
    Newer {
        /// `the artefact`, or a section.
        what: String,
        /// Its version.
        found: u32,
        /// The newest version that is known.
        newest: u32,
    },
    /// A section that this version does not have.
    #[error("this tpc knows no section `{0}`")]
    UnknownSection(String),
    /// The kernels.
    #[error("kernels: {0}")]
    Kernels(String),
    /// The program.
    #[error("{entry}: {what}")]
    Program {
        /// The entry.
        entry: String,
        /// The first finding with its code.
        what: String,
    },
}

impl ArtefactError {
    /// The code.
    pub fn code(&self) -> &'static Code {
        match self {
            ArtefactError::Archive(_) | ArtefactError::Entry { .. } => &codes::DAMAGED,
            ArtefactError::Manifest(_) => &codes::MANIFEST,
            ArtefactError::Kernels(_) => &codes::KERNELS,
            ArtefactError::Newer { .. } | ArtefactError::UnknownSection(_) => &codes::NEWER,
            ArtefactError::Program { .. } => &codes::PROGRAM,
        }
    }

    /// The cure.
    pub fn help(&self) -> &'static str {
        match self {
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

    /// The diagnostic of the file of that name.
    pub fn diagnostic(&self, file: &str) -> Diagnostic {
        Diagnostic::new(self.code(), file, format!("{file}: {self}")).help(self.help())
    }
}
