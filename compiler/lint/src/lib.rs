//! Lints: checks of model files, captured graphs, configurations, plans and command lines.
//!
//! A lint is a file with one constant: its code with the text of `tpc explain`, and the check function. Each folder
//! holds the lints of one kind of input; its `mod.rs` registers them. [`merge`](fn@merge) combines findings that
//! differ only in the layer number. A [`Policy`] selects the findings that count.

mod baseline;
mod baseline_state;
mod commands;
mod configs;
mod files;
pub mod format;
mod graphs;
mod merge;
mod plans;
mod policy;
mod view;

use std::cell::OnceCell;

use tpc_ir::Code;

pub use baseline::{Accepted, Baseline, BaselineError};
pub use baseline_state::BaselineState;
pub use configs::{NARROW, SHARES};
pub use files::{UNEVEN, is_uneven};
pub use merge::{Finding, Origin, merge, numbers};
pub use plans::{CAPACITY, CHOSEN_MODE};
pub use policy::{DenyFrom, Policy};
pub use view::{Capture, Command, File, Plan, graph_of};

use tpc_core::advice::{Advice, Advisor};
use tpc_core::pipeline::{CompiledModel, tensor_failures};
use tpc_core::placement::Placement;
use tpc_core::report::PlanReport;
use tpc_ggml::llama_cpp::{CommandLine, RopeOptions};
use tpc_gguf::Header;
use tpc_models::{RopeScaling, Stretch};

use tpc_diag::{Diagnostic, Entity, EntityKind, Message, Name};

/// The check function of a lint, by its input. It appends one diagnostic per finding.
#[derive(Clone, Copy)]
pub enum Check {
    /// Checks a model file.
    File(fn(&File<'_>, &mut Vec<Diagnostic>)),
    /// Checks a captured graph.
    Graph(fn(&Capture<'_>, &mut Vec<Diagnostic>)),
    /// Checks a llama.cpp command line.
    Command(fn(&Command<'_>, &mut Vec<Diagnostic>)),
    /// Checks a plan and the requested placement.
    Plan(fn(&Plan<'_>, &mut Vec<Diagnostic>)),
}

/// A lint.
pub struct Lint {
    /// The kind of entity in its findings.
    pub entity: EntityKind,
    /// The code, with the user's documentation.
    pub code: Code,
    check: Check,
}

impl Lint {
    fn finding(&'static self, name: impl Into<Name>, message: impl Into<Message>) -> Diagnostic {
        Diagnostic::new(&self.code, self.entity(name.into()), message)
    }

    /// Returns a finding with the code's milder severity.
    fn milder_finding(
        &'static self,
        name: impl Into<Name>,
        message: impl Into<Message>,
    ) -> Diagnostic {
        Diagnostic::milder(&self.code, self.entity(name.into()), message)
    }

    /// Returns the entity with this name; tensors and ops take their layer from it.
    fn entity(&self, name: Name) -> Entity {
        let kind = self.entity;
        let name = match kind {
            EntityKind::Tensor | EntityKind::Op => view::layer_name(&name.to_string()),
            EntityKind::Key
            | EntityKind::Option
            | EntityKind::Device
            | EntityKind::File
            | EntityKind::Plan => name,
        };
        Entity { kind, name }
    }
}

/// The lints of one folder.
pub struct Topic {
    /// The name of the input.
    pub name: &'static str,
    /// The lints, in report order.
    pub lints: &'static [&'static Lint],
}

/// All topics.
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

/// The lint for a context longer than the model's.
pub static LONG_CONTEXT: &Lint = &configs::context::LINT;

/// Returns every lint in report order.
pub fn lints() -> impl Iterator<Item = &'static Lint> {
    TOPICS.iter().flat_map(|t| t.lints).copied()
}

/// True if the code belongs to a command-line lint.
pub fn is_of_command(code: &Code) -> bool {
    let mut all = lints().filter(|l| matches!(l.check, Check::Command(_)));
    all.any(|l| l.code == *code)
}

/// Returns the findings in a model file.
pub fn lint_file(file: &File<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::File(check) = lint.check {
            check(file, &mut out);
        }
    }
    out
}

/// Returns the findings in a captured graph.
pub fn lint_graph(graph: &Capture<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Graph(check) = lint.check {
            check(graph, &mut out);
        }
    }
    out
}

/// Returns the findings in a plan.
pub fn lint_plan(plan: &Plan<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Plan(check) = lint.check {
            check(plan, &mut out);
        }
    }
    out
}

/// Returns the context extension by a command line's RoPE scaling, or `None` without scaling.
pub fn stretch(line: &CommandLine, file: &Header) -> Option<Stretch> {
    let RopeOptions {
        kind,
        factor,
        original,
        context,
    } = line.rope();
    let asked = RopeScaling {
        kind,
        factor,
        original,
        context,
    };
    let file = RopeScaling::of_file(file);
    match asked.is_empty() {
        true => None,
        false => asked.or(file.clone()).of_options(&file),
    }
}

/// Turns findings about models that llama.cpp does not load into errors, for a llama.cpp command line.
pub fn for_llama_cpp(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    for d in &mut found {
        if plans::ENGINE_ERRORS.contains(&d.code) {
            d.severity = d.code.severity;
        }
    }
    found
}

/// Returns the findings in a llama.cpp command line.
pub fn lint_command(command: &Command<'_>) -> Vec<Diagnostic> {
    let mut out = Vec::new();
    for lint in lints() {
        if let Check::Command(check) = lint.check {
            check(command, &mut out);
        }
    }
    out
}

/// Returns the finding for servers with unspecified links.
pub fn lint_servers(placement: &Placement) -> Option<Diagnostic> {
    let servers = &placement.servers;
    let used = (servers.count() > 0).then(|| servers.to_string())?;
    commands::remote_devices::assumed_network(placement, &used)
}

/// Returns a plan's report with the lints' findings and verdict.
pub fn plan_report(path: &str, placement: &Placement, compiled: &CompiledModel) -> PlanReport {
    report_with(path, placement, compiled, None)
}

/// Returns a plan's report with advice: configurations that fit, or faster options.
pub fn plan_report_with_advice(
    path: &str,
    placement: &Placement,
    compiled: &CompiledModel,
    advisor: &Advisor<'_>,
) -> PlanReport {
    report_with(path, placement, compiled, Some(advisor))
}

/// Returns the reasons why the plan's engine fails to split tensors.
fn engine_findings(placement: &Placement, compiled: &CompiledModel) -> Vec<Diagnostic> {
    if !compiled.mode.splits_tensors() {
        return Vec::new();
    }
    let build = placement.build;
    let all = tensor_failures(placement.engine, &compiled.model, placement);
    let all = all.into_iter().map(|p| {
        let entity = Entity {
            kind: EntityKind::Option,
            name: Name::plain("-sm"),
        };
        let d = Diagnostic::new(p.code, entity, p.message(build));
        d.help("use -sm layer with this engine; see `tpc explain`")
    });
    all.collect()
}

fn report_with(
    path: &str,
    placement: &Placement,
    compiled: &CompiledModel,
    advisor: Option<&Advisor<'_>>,
) -> PlanReport {
    let mut report = PlanReport::new(path, placement, compiled);
    let keeper = advisor.filter(|_| !report.bits.same);
    report.bits.kept_at = keeper.and_then(|a| a.origin.ordered_share(placement, compiled));
    let unfit = advisor.filter(|_| !compiled.fits());
    let counsel = unfit.map(|a| a.counsel(placement, compiled));
    report.advice = counsel
        .iter()
        .flat_map(|c| &c.advice)
        .map(Into::into)
        .collect();
    // Several lints may request the search; it runs only once.
    let known: OnceCell<Option<Advice>> = OnceCell::new();
    let search = || {
        known
            .get_or_init(|| {
                advisor
                    .filter(|_| counsel.is_none())?
                    .faster(placement, compiled)
            })
            .clone()
    };
    let findings = lint_plan(&Plan {
        placement,
        compiled,
        report: &report,
        counsel: counsel.as_ref(),
        faster: advisor.is_some().then_some(&search),
    });
    let mut all = engine_findings(placement, compiled);
    all.extend(findings);
    report.with_findings(all)
}
