//! Tool calls: the formats in which models write them.
//!
//! - `format` recognises a model's format from its chat template.
//! - `generic` describes tools in a system message, for templates that do not read tools.

mod format;
pub(crate) mod generic;

pub use format::ToolFormat;
