//! # Artefacts: compiled programs
//!
//! A `.tpc` file holds a planned model: a [`Program`](tpc_ir::Program), a [`Manifest`], and kernels. The weights stay
//! in the model file, which a [`Digest`] identifies.
//!
//! - The same manifest and program give the same bytes, without a path, time or host name.
//! - Files are not trusted. The reader rejects other forms of the container, text that does not parse, and programs
//!   that fail the [verifier](tpc_ir::program::verify()). Each error has a code of [`CODES`].
//! - The reader never panics. Its time and memory are linear in the file's length, at most [`MAX_BYTES`].
//! - Older versions are read. Newer versions are rejected by version number.

mod archive;
mod artefact;
pub mod codes;
mod depfile;
mod digest;
mod entry_defect;
mod error;
mod kernels;
mod manifest;

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap fails the test")]
mod tests;

pub use archive::{Entry, MAX_BYTES, read as read_archive, write as write_archive};
pub use artefact::{Artefact, MAIN, Section, sections};
pub use codes::CODES;
pub use depfile::rule;
pub use digest::{Digest, of_model};
pub use entry_defect::{ALIGNMENT, EntryDefect};
pub use error::ArtefactError;
pub use kernels::{KernelModule, KernelRecord};
pub use manifest::{
    CacheOptions, FORMAT, Manifest, ModelRecord, OptionRecord, SectionVersion, StoredVersion,
    TargetRecord, WindowRecord,
};
