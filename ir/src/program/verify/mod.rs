//! The verifier of programs, which come from a pass or from an untrusted file.
//!
//! The graph is already [verified](crate::Verified). The verifier checks the rest:
//!
//! - TPC0270: every handle refers to an entity of the program.
//! - TPC0271: there is at least one batch shape; shapes ascend and have the same context.
//! - TPC0272: computing instructions are covered once; launches are in their queues once, in the phase that their
//!   operands need; phases ascend.
//! - TPC0273: a launch fits the instructions that it covers.
//! - TPC0274: a value is at its place, in the memory that its op implies; a weight's format can store its row ends.
//! - TPC0275: values end within their buffers, buffers within their arenas. Buffers begin at multiples of
//!   [`ALIGNMENT`](super::ALIGNMENT), and persistent buffers do not overlap.
//! - TPC0276: all queues end.
//! - TPC0277: steps, outputs and states read values that are computed before and not yet overwritten.
//! - TPC0278: conflicting accesses to memory are ordered for any speed of the places.
//! - TPC0279: a launch overwrites an operand only if its op allows it.
//!
//! One run of all queues without data finds violations from TPC0275 on: arenas record the value in their bytes and
//! the steps that accessed them. Vector clocks cover all interleavings.

mod accesses;
mod codes;
mod homes;
mod memory;
mod order;
mod queues;
mod structure;

use std::fmt;

pub use codes::CODES;

use super::Program;
use super::text::Part;
use crate::code::Code;

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramError {
    /// The violated invariant.
    pub code: &'static Code,
    /// The part of the program that violates it.
    pub part: Part,
    /// The message.
    pub what: String,
}

impl ProgramError {
    pub(super) fn new(code: &'static Code, part: Part, what: impl Into<String>) -> ProgramError {
        ProgramError {
            code,
            part,
            what: what.into(),
        }
    }
}

impl fmt::Display for ProgramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for ProgramError {}

/// Checks the invariants.
///
/// # Errors
/// Returns the violations of the first failing group of checks.
pub fn verify(program: &Program) -> Result<(), Vec<ProgramError>> {
    for check in [structure::check, homes::check, memory::check] {
        let mut errors = Vec::new();
        check(program, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
    }
    Ok(())
}
