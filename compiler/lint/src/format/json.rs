//! The JSON report.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Accepted, Finding};
use tpc_diag::{FormatVersion, Severity, Verdict};
use tpc_ggml::engines::{Backend, Build};

/// The object of `lint --format json`. Keys may be added but never changed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LintReport<'a> {
    /// The version of this format.
    pub tpc: FormatVersion,
    /// The file.
    pub path: &'a str,
    /// `error` if a finding is an error.
    pub verdict: Verdict,
    /// The device counts of the plans.
    pub devices: &'a [usize],
    /// The number of findings.
    pub summary: Summary,
    /// The findings.
    pub findings: &'a [Finding],
    /// The command line's engine release and the source of its facts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<&'a EngineFacts>,
    /// The equivalent `tpc` command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<&'a str>,
    /// The accepted findings that no longer occur.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub stale: &'a [Accepted],
}

/// An engine release and the source of its facts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EngineFacts {
    /// The engine.
    pub name: &'static str,
    /// The engine's version.
    pub version: &'static str,
    /// The month of the release.
    pub date: &'static str,
    /// The source of the facts.
    pub source: &'static str,
    /// The RPC protocol's version.
    pub rpc_protocol: Option<(u8, u8, u8)>,
    /// The devices' known back ends.
    pub backends: Vec<Backend>,
}

impl EngineFacts {
    /// Returns the facts about a release, for devices with these back ends.
    pub fn new(build: &'static Build, backends: &[Option<Backend>]) -> EngineFacts {
        let mut known: Vec<Backend> = backends.iter().flatten().copied().collect();
        known.sort_unstable();
        known.dedup();
        EngineFacts {
            name: build.engine.name(),
            version: &build.version,
            date: &build.date,
            source: &build.source,
            rpc_protocol: build.rpc_protocol,
            backends: known,
        }
    }
}

/// Findings by severity. Accepted findings are counted apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summary {
    /// Includes denied findings.
    pub errors: usize,
    /// The number of warnings.
    pub warnings: usize,
    /// The number of notes.
    pub notes: usize,
    /// The number of accepted findings.
    #[serde(skip_serializing_if = "is_zero")]
    pub accepted: usize,
}

fn is_zero(n: &usize) -> bool {
    *n == 0
}

impl Summary {
    /// Counts these findings.
    pub fn of(findings: &[Finding]) -> Summary {
        let count = |s: Severity| {
            let open = findings.iter().filter(|f| !f.is_accepted());
            open.filter(|f| f.diagnostic.severity == s).count()
        };
        Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
            accepted: findings.iter().filter(|f| f.is_accepted()).count(),
        }
    }

    /// Returns the verdict.
    pub const fn verdict(self) -> Verdict {
        Verdict::of_errors(self.errors > 0)
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let Summary {
            errors,
            warnings,
            notes,
            ..
        } = *self;
        write!(
            f,
            "{errors} error{}, {warnings} warning{}, {notes} note{}",
            s(errors),
            s(warnings),
            s(notes)
        )
    }
}
