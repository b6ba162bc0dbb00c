//! # Artefacts: programs that were compiled before
//!
//! A file `.tpc` holds what planning a model for devices gives: a [`Program`](tpc_ir::Program), and a [`Manifest`] that says
//! of which model it is, by which options it came about, and what may run it. The weights stay in the model's file, which is
//! known again by its [`Digest`].
//!
//! - `archive` is the container: a zip of stored entries at page boundaries, of which one form exists;
//! - `entry_defect` and `error` are what can be wrong;
//! - `manifest` is what the file says of itself, in RON;
//! - `kernels` is the section of machine code for cards;
//! - `digest` are hashes: of a model's header, of a text;
//! - `artefact` joins them: [`Artefact::to_bytes`], [`Artefact::read`];
//! - `depfile` is the rule of a Makefile that names what was read.
//!
//! Invariants:
//!
//! - The same manifest and program give the same bytes, wherever and whenever. No path, time, or name of a machine is in them.
//! - Nothing in a file is believed. A container that is not in the one form, text that does not parse, and a program that
//!   the [verifier](tpc_ir::program::verify()) does not accept are refused with a code of [`CODES`].
//! - No file makes the reader panic, or take more than time and memory linear in its length, which is at most [`MAX_BYTES`].
//! - Files of older versions are read. Newer ones are refused by name, whatever else is in them.

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
