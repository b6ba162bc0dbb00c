//! # Diagnostics
//!
//! A [`Diagnostic`] is a report to the user. Its [`Code`] gives the default severity and the text of `tpc explain`.
//! Each crate declares its own codes; [`codes`] has the shared codes.

pub mod codes;
mod diagnostic;
mod entity;
mod excerpt;
mod format_version;
mod message;
pub mod suggest;
mod verdict;
mod visible;

pub use diagnostic::Diagnostic;
pub use entity::{Entity, EntityKind};
pub use excerpt::Excerpt;
pub use format_version::FormatVersion;
pub use message::{Argument, Layer, Line, Message, Name, Part, Quantity, places};
pub use tpc_ir::{Code, Severity};
pub use verdict::Verdict;
pub use visible::{steers, visible};

/// True if the code prevents planning and linting: it concerns an option or the model file.
pub fn unusable(code: &Code) -> bool {
    matches!(code.number(), Some(100..150 | 400..500))
}
