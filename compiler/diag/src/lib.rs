//! # Diagnostics
//!
//! A [`Diagnostic`] is one report to the user: a message that says what is wrong, the entity concerned, and a cure. It
//! refers to a [`Code`], the declaration that `tpc explain` prints and from which its severity comes. Crates declare
//! the codes of their own errors; [`codes`] has those of planning and of the command line, which several crates report.
//!
//! An [`Excerpt`] shows a part of a graph below the message. [`suggest`] guesses the name that a slip of the user meant.
//!
//! The crate knows nothing of what is diagnosed: it stands below the readers of files, the planner and the lints.

pub mod codes;
mod diagnostic;
mod entity;
mod excerpt;
mod message;
pub mod suggest;
mod visible;

pub use diagnostic::Diagnostic;
pub use entity::{Entity, EntityKind};
pub use excerpt::Excerpt;
pub use message::{Argument, Layer, Line, Message, Name, Part, Quantity, places};
pub use tpc_ir::{Code, Severity};
pub use visible::{steers, visible};

/// Whether a code concerns an option or the file itself, so that there is nothing to plan or to lint.
pub fn unusable(code: &Code) -> bool {
    matches!(code.number(), Some(100..150 | 400..500))
}
