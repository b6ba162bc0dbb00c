//! What a model file, a captured graph, a configuration or a plan says that its user should know.
//!
//! A lint is one file with one constant: its code, what `tpc explain` says of it, and the function that finds it. The
//! folders are named after what their lints look at; a line in the folder's list registers a lint. What a lint finds
//! in one layer it finds in the others too, so it may tell each: [`merged`] makes one finding of those that differ in
//! the layer's number alone. A [`Policy`] decides which findings count.

mod commands;
mod configs;
mod files;
pub mod format;
mod graphs;
mod merge;
mod plans;
mod policy;
mod view;

use tpc_ir::Code;

pub use merge::{Finding, merged, numbers};
pub use policy::Policy;
pub use view::{Capture, Command, File, Plan, graph_of};

use tpc_core::pipeline::Compiled;
use tpc_core::placement::Placement;
use tpc_core::report::PlanReport;
use tpc_diag::Diagnostic;

/// The kind of entity that the findings of a lint name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntityKind {
    /// A tensor of the file, or a state.
    Tensor,
    /// A key of the metadata.
    Key,
    /// An op of the graph, or its result.
    Op,
    /// An option of the command line.
    Option,
    /// A device, or the host.
    Device,
    /// The file.
    File,
    /// The plan as a whole.
    Plan,
}

impl EntityKind {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            EntityKind::Tensor => "tensor",
            EntityKind::Key => "key",
            EntityKind::Op => "op",
            EntityKind::Option => "option",
            EntityKind::Device => "device",
            EntityKind::File => "file",
            EntityKind::Plan => "plan",
        }
    }
}

/// What finds something, by what it looks at; each adds a diagnostic per finding.
#[derive(Clone, Copy)]
pub enum Check {
    /// A model file.
    File(fn(&File<'_>, &mut Vec<Diagnostic>)),
    /// A captured graph.
    Graph(fn(&Capture<'_>, &mut Vec<Diagnostic>)),
    /// A command line of llama.cpp.
    Command(fn(&Command<'_>, &mut Vec<Diagnostic>)),
    /// A plan, and what was asked for.
    Plan(fn(&Plan<'_>, &mut Vec<Diagnostic>)),
}

/// A lint: its code with what `tpc explain` says of it, and what finds it.
pub struct Lint {
    /// The kind of entity that its findings name.
    pub entity: EntityKind,
    /// The code, with the user's documentation.
    pub code: Code,
    check: Check,
}

/// The lints of one folder.
pub struct Topic {
    /// What they look at.
    pub name: &'static str,
    /// The lints, in the order in which findings are told.
    pub lints: &'static [&'static Lint],
}

/// Every lint.
pub static TOPICS: &[Topic] = &[
    Topic {
        name: "model files",
        lints: files::LINTS,
    },
    Topic {
        name: "captured graphs",
        lints: graphs::LINTS,
    },
    Topic {
        name: "configurations",
        lints: configs::LINTS,
    },
    Topic {
        name: "plans",
        lints: plans::LINTS,
    },
    Topic {
        name: "command lines of llama.cpp",
        lints: commands::LINTS,
    },
];

/// Every lint, in the order in which findings are told.
pub fn lints() -> impl Iterator<Item = &'static Lint> {
    TOPICS.iter().flat_map(|t| t.lints).copied()
}

/// The code of a device whose memory does not suffice.
pub fn over_capacity() -> &'static Code {
    &plans::capacity::LINT.code
}

/// The lint of that code.
pub fn find(code: &Code) -> Option<&'static Lint> {
    lints().find(|l| l.code == *code)
}

/// The findings in a model file.
pub fn lint_file(file: &File<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::File(check) = lint.check {
            check(file, &mut out);
        }
    }
    out
}

/// The findings in a captured graph.
pub fn lint_graph(graph: &Capture<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Graph(check) = lint.check {
            check(graph, &mut out);
        }
    }
    out
}

/// The findings in a plan.
pub fn lint_plan(plan: &Plan<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Plan(check) = lint.check {
            check(plan, &mut out);
        }
    }
    out
}

/// The findings in a command line of llama.cpp.
pub fn lint_command(command: &Command<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Command(check) = lint.check {
            check(command, &mut out);
        }
    }
    out
}

/// The report of a plan with what the lints find in it, and their verdict.
pub fn plan_report(path: &str, placement: &Placement, compiled: &Compiled) -> PlanReport {
    let report = PlanReport::new(path, placement, compiled);
    let findings = lint_plan(&Plan {
        placement,
        compiled,
        report: &report,
    });
    report.with_findings(findings)
}
