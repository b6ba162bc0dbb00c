//! # Diagnostics
//!
//! A [`Diagnostic`] is one report to the user: a message about the problem, the affected entity, and a cure. Its
//! [`Code`] declares the default severity and the text of `tpc explain`. Each crate declares the codes of its own
//! errors. [`codes`] declares the shared codes of planning and of the command line.
//!
//! An [`Excerpt`] shows a part of a graph below the message. [`suggest`] finds the likely intended name for a misspelt
//! one.
//!
//! This crate does not depend on the file readers, the planner or the lints.

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

/// True if a code concerns an option or the file itself. Planning and linting are then impossible.
pub fn unusable(code: &Code) -> bool {
    matches!(code.number(), Some(100..150 | 400..500))
}
