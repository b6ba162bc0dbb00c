//! # Diagnostics
//!
//! A [`Diagnostic`] is one report to the user. Its [`Code`] declares the default severity and the text of `tpc
//! explain`. Each crate declares its own codes; [`codes`] has the shared codes of planning and of the command line.
//!
//! An [`Excerpt`] shows a part of a graph below the message. [`suggest`] finds the nearest name to a misspelt one.

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

/// True if a code rules out planning and linting, because it concerns an option or the file itself.
pub fn unusable(code: &Code) -> bool {
    matches!(code.number(), Some(100..150 | 400..500))
}
