//! Findings in the forms that other programs read.

mod github;
mod json;
mod sarif;

pub use github::github;
pub use json::{EngineFacts, LintReport, Summary};
pub use sarif::sarif;
