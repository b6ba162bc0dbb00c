//! From a model's graph to the programs of its devices, for one request.

use tpc_ir::verify::{VerifyError, Violations};
use tpc_ir::{Graph, Verified, stage};
use tpc_passes::lower::lower;
use tpc_passes::plan::{PlanRequest, Planned, plan};
use tpc_passes::rewrite::{Limits, Machine, RULES, Report as RewriteReport, Rewritten, rewrite};
use tpc_passes::shard::shard;

use tpc_diag::{Diagnostic, codes};

/// A plan with all graphs that follow from it.
pub(super) struct Division {
    pub(super) planned: Planned,
    pub(super) eager: Verified<stage::Sharded>,
    pub(super) sharded: Verified<stage::Sharded>,
    pub(super) rewriting: RewriteReport,
    pub(super) programs: Verified<stage::Programs>,
}

/// A plan with its sharded graph, before and after rewriting.
pub(super) fn sharded(
    graph: &Verified<stage::Model>,
    request: &PlanRequest,
) -> Result<(Planned, Verified<stage::Sharded>, Rewritten), Vec<Diagnostic>> {
    let planned = plan(graph, request).map_err(invalid)?;
    let Planned {
        graph,
        factors,
        analysis,
        choice,
        ..
    } = &planned;
    let eager = shard(graph, factors, analysis, choice).map_err(|e| internal(graph, &e))?;
    let eager = Verified::new(eager).map_err(invalid)?;
    let machine = Machine {
        topology: &request.topology,
        workload: &request.workload,
    };
    let rewritten = rewrite(&eager, machine, Limits::default(), RULES);
    Ok((planned, eager, rewritten))
}

/// Plans, shards, rewrites and lowers a model's graph. Every graph on the way is verified.
pub(super) fn divide(
    graph: &Verified<stage::Model>,
    request: &PlanRequest,
) -> Result<Division, Vec<Diagnostic>> {
    let (planned, eager, rewritten) = sharded(graph, request)?;
    let Rewritten {
        graph: sharded,
        report: rewriting,
    } = rewritten;
    let sharded = Verified::new(sharded).map_err(invalid)?;
    let programs = lower(&sharded).map_err(|e| internal(graph, &e))?;
    let programs = Verified::new(programs).map_err(invalid)?;
    Ok(Division {
        planned,
        eager,
        sharded,
        rewriting,
        programs,
    })
}

/// A pass that failed: a fault of tpc's own.
fn internal(graph: &Graph, e: &dyn std::fmt::Display) -> Vec<Diagnostic> {
    let d = Diagnostic::new(&codes::UNVERIFIED_PLAN, &graph.name, e.to_string());
    vec![d.help("this is a fault of tpc; please report it")]
}

/// A graph that does not verify: a fault of tpc's own.
pub(super) fn invalid(violations: Violations) -> Vec<Diagnostic> {
    let Violations { stage, errors, .. } = violations;
    let diagnostic = |e: VerifyError| {
        let (entity, message) = (format!("{stage} graph"), format!("{}: {e}", e.code()));
        Diagnostic::new(&codes::UNVERIFIED_PLAN, entity, message)
            .help("this is a fault of tpc; please report it")
    };
    errors.into_iter().map(diagnostic).collect()
}
