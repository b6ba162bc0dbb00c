use tpc_ir::verify::{VerifyError, Violations};
use tpc_ir::{Budget, BudgetExceeded, Graph, Resource, Verified, stage};
use tpc_passes::canonicalise::canonicalise;
use tpc_passes::lower::{LowerError, lower_within};
use tpc_passes::plan::{PlanError, PlanRequest, PlannedGraph, plan_within};
use tpc_passes::rewrite::{
    Limits, Machine, RULES, Report as RewriteReport, RewrittenGraph, rewrite,
};
use tpc_passes::shard::shard;

use tpc_diag::{Diagnostic, codes};

pub(super) struct Division {
    pub(super) planned: PlannedGraph,
    pub(super) eager: Verified<stage::Sharded>,
    pub(super) sharded: Verified<stage::Sharded>,
    pub(super) rewriting: RewriteReport,
    pub(super) programs: Verified<stage::Programs>,
}

pub(super) struct Sharding {
    pub(super) planned: PlannedGraph,
    eager: Verified<stage::Sharded>,
    pub(super) rewritten: RewrittenGraph,
}

impl Sharding {
    pub(super) fn new(
        graph: &Verified<stage::Model>,
        request: &PlanRequest,
        budget: &Budget,
    ) -> Result<Sharding, Vec<Diagnostic>> {
        let planned = plan_within(graph, request, budget).map_err(|e| match e {
            PlanError::Invalid(violations) => invalid(violations),
            PlanError::Budget(e) => vec![over_budget(&graph.name, &e)],
            e @ PlanError::Cells => internal(graph, &e),
        })?;
        let PlannedGraph {
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
        let limits = Limits {
            sums: request.sums,
            ..Limits::for_budget(budget)
        };
        let rewritten = rewrite(&eager, machine, limits, RULES);
        budget.take(Resource::Terms, rewritten.report.nodes() as u64);
        Ok(Sharding {
            planned,
            eager,
            rewritten,
        })
    }

    pub(super) fn lower(self, budget: &Budget) -> Result<Division, Vec<Diagnostic>> {
        let Sharding {
            planned,
            eager,
            rewritten: RewrittenGraph { graph, report },
        } = self;
        let sharded = Verified::new(graph).map_err(invalid)?;
        let programs = lower_within(&sharded, budget).map_err(|e| match e {
            LowerError::Budget(e) => vec![over_budget(&sharded.name, &e)],
            fault => internal(&sharded, &fault),
        })?;
        let programs = Verified::new(canonicalise(programs)).map_err(invalid)?;
        Ok(Division {
            planned,
            eager,
            sharded,
            rewriting: report,
            programs,
        })
    }
}

/// Plans, shards, rewrites, lowers and canonicalises a graph. Every intermediate graph is verified.
pub(super) fn divide(
    graph: &Verified<stage::Model>,
    request: &PlanRequest,
    budget: &Budget,
) -> Result<Division, Vec<Diagnostic>> {
    Sharding::new(graph, request, budget)?.lower(budget)
}

pub(super) fn over_budget(name: &str, e: &BudgetExceeded) -> Diagnostic {
    let value = e.at.as_ref().map(|at| at.value.as_str());
    let entity = value.filter(|v| !v.is_empty()).unwrap_or(name).to_owned();
    Diagnostic::new(&codes::OVER_BUDGET, entity, e.to_string()).help(
        "known models need less than an eighth of this; look for long chains of concatenations or views, and for values \
         with many uses; otherwise plan a smaller part of the graph, or use -sm layer or -sm none, and report the \
         file",
    )
}

fn internal(graph: &Graph, e: &dyn std::fmt::Display) -> Vec<Diagnostic> {
    let d = Diagnostic::new(&codes::UNVERIFIED_PLAN, &graph.name, e.to_string());
    vec![d.help("this is a bug in tpc: report it with the command and the model's header")]
}

pub(super) fn invalid(violations: Violations) -> Vec<Diagnostic> {
    let Violations { stage, errors, .. } = violations;
    let diagnostic = |e: VerifyError| {
        let (entity, message) = (format!("{stage} graph"), format!("{}: {e}", e.code()));
        Diagnostic::new(&codes::UNVERIFIED_PLAN, entity, message)
            .help("this is a bug in tpc: report it with the command and the model's header")
    };
    errors.into_iter().map(diagnostic).collect()
}
