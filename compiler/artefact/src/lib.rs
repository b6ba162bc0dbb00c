//! # Artefacts: compiled programs
//!
//! A `.tpc` file holds the result of planning a model for devices: a [`Program`](tpc_ir::Program) and a [`Manifest`].
//! The manifest names the model, the options and the target. The weights stay in the model's file, which is identified
//! by its [`Digest`].
//!
//! - `archive` is the container: a zip of stored entries at page boundaries, in a canonical form;
//! - `entry_defect` and `error` define the errors;
//! - `manifest` is the file's description, in RON;
//! - `kernels` is the section with machine code for cards;
//! - `digest` hashes models and texts;
//! - `artefact` combines the parts: [`Artefact::to_bytes`], [`Artefact::read`];
//! - `depfile` writes a Makefile rule that lists the input files.
//!
//! Invariants:
//!
//! - The same manifest and program always give the same bytes. The file contains no path, time or host name.
//! - A file is not trusted. The reader rejects a non-canonical container, text that does not parse, and a program that
//!   fails the [verifier](tpc_ir::program::verify()). Every rejection has a code of [`CODES`].
//! - The reader never panics. Its time and memory are linear in the length of the file, which is at most [`MAX_BYTES`].
//! - Older versions are read. Newer versions are rejected with their version number, regardless of the remaining
//!   content.

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
