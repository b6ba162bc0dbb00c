use tpc_diag::Diagnostic;
use tpc_ir::Code;

use crate::codes;
use crate::entry_defect::EntryDefect;

/// A defect of an artefact.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArtefactError {
    /// An invalid container.
    #[error("{0}")]
    Archive(String),
    /// A zip archive that `tpc compile` did not write.
    #[error(
        "not a tpc artefact: the first entry of the zip archive is {first}, not `manifest.ron`"
    )]
    Foreign {
        /// The escaped and shortened name of the first entry, or `missing`.
        first: String,
    },
    /// An invalid entry of the container.
    #[error("entry `{name}`: {defect}")]
    Entry {
        /// The escaped and shortened name.
        name: String,
        /// The defect.
        defect: EntryDefect,
    },
    /// An invalid manifest.
    #[error("manifest.ron: {0}")]
    Manifest(String),
    /// A newer format of the file or of a section.
    #[error("{what} has format {found}; this tpc reads formats up to {newest}")]
    Newer {
        /// The name of the section, or `the artefact`.
        what: String,
        /// The format found.
        found: u32,
        /// The newest supported format.
        newest: u32,
    },
    /// An unknown section.
    #[error("this tpc does not know section `{0}`")]
    UnknownSection(String),
    /// Invalid kernels.
    #[error("kernels: {0}")]
    Kernels(String),
    /// An invalid program.
    #[error("{entry}: {what}")]
    Program {
        /// The name of the entry.
        entry: String,
        /// The first error, with its code.
        what: String,
    },
}

impl ArtefactError {
    /// Returns the code.
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

    /// Returns the cure.
    pub fn help(&self) -> &'static str {
        match self {
            ArtefactError::Foreign { first } if first.to_ascii_lowercase().ends_with(".gguf") => {
                "the zip archive holds a model: unpack it (`python3 -m zipfile -e FILE .`), and give the .gguf file"
            }
            ArtefactError::Foreign { first } if first.ends_with("data.pkl") => {
                "the zip archive is a PyTorch checkpoint: convert the model with llama.cpp's convert_hf_to_gguf.py"
            }
            ArtefactError::Foreign { .. } => {
                "give a file that `tpc compile MODEL -o FILE.tpc` wrote"
            }
            ArtefactError::Archive(_) | ArtefactError::Entry { .. } => {
                "check that the file is a tpc artefact; fetch a damaged artefact again from a source you trust, \
                 or compile the model again"
            }
            ArtefactError::Newer { .. } | ArtefactError::UnknownSection(_) => {
                "update tpc, or compile the model again with this version"
            }
            ArtefactError::Manifest(_)
            | ArtefactError::Kernels(_)
            | ArtefactError::Program { .. } => {
                "compile the model again: tpc compile MODEL -o FILE.tpc"
            }
        }
    }

    /// Returns the diagnostic for the file named `file`.
    pub fn diagnostic(&self, file: &str) -> Diagnostic {
        Diagnostic::new(self.code(), file, format!("{file}: {self}")).help(self.help())
    }
}
