//! Findings in the forms that other programs read.

mod github;
mod json;
mod sarif;

pub use github::github;
pub use json::{LintReport, Summary};
pub use sarif::sarif;

use super::{Finding, Names, find};

/// What the findings of a code name; those that are no lint's are about the file.
fn names(finding: &Finding) -> Names {
    find(finding.diagnostic.code).map_or(Names::File, |l| l.names)
}
