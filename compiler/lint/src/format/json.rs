//! One JSON object.

use serde::Serialize;

use crate::Finding;
use tpc_diag::Severity;
use tpc_ggml::engines::{Backend, Build};

/// The object that `lint --format json` prints. Keys may be added, never changed.
#[derive(Clone, Debug, Serialize)]
pub struct LintReport<'a> {
    /// Version of this format.
    pub tpc: u32,
    /// The file.
    pub path: &'a str,
    /// `ok` or `error`.
    pub verdict: &'static str,
    /// The numbers of devices that were planned for.
    pub devices: &'a [usize],
    /// How many findings there are.
    pub summary: Summary,
    /// The findings.
    pub findings: &'a [Finding],
    /// The release of the engine that the command line is for, and the source of what is known of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<&'a EngineFacts>,
    /// The command that plans what the other engine's command line asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub equivalent: Option<&'a str>,
}

/// The release of an engine, and the source of the facts that findings rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EngineFacts {
    /// The engine.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The month of the release.
    pub date: &'static str,
    /// The source of the facts.
    pub source: &'static str,
    /// The RPC protocol that it speaks.
    pub rpc_protocol: Option<(u8, u8, u8)>,
    /// The back ends of the devices, as far as they are known.
    pub backends: Vec<Backend>,
}

impl EngineFacts {
    /// The facts of a release, for devices of these back ends.
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

/// How many findings there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Findings that do not work or are denied.
    pub errors: usize,
    /// Findings that do harm or are likely not intended.
    pub warnings: usize,
    /// Findings that are worth knowing.
    pub notes: usize,
}

impl Summary {
    /// Of these findings.
    pub fn of(findings: &[Finding]) -> Summary {
        let count = |s: Severity| {
            let of = findings.iter().filter(|f| f.diagnostic.severity == s);
            of.count()
        };
        Summary {
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            notes: count(Severity::Note),
        }
    }

    /// The word for the whole.
    pub const fn verdict(self) -> &'static str {
        if self.errors > 0 { "error" } else { "ok" }
    }
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let s = |n: usize| if n == 1 { "" } else { "s" };
        let Summary {
            errors,
            warnings,
            notes,
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
