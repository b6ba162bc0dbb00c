//! Findings in the forms that other programs read.

mod github;
mod json;
mod sarif;

pub use github::github;
pub use json::{LintReport, Summary};
pub use sarif::sarif;

use super::{EntityKind, Finding, find};

/// The kind of entity that a finding names; the codes that are no lint's are about the file.
fn kind(finding: &Finding) -> EntityKind {
    find(finding.diagnostic.code).map_or(EntityKind::File, |l| l.entity)
}
