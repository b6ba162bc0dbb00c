//! Machine-readable formats of findings.

mod github;
mod json;
mod sarif;

pub use github::github;
pub use json::{EngineFacts, LintReport, Summary};
pub use sarif::sarif;
