//! Passes that divide a model, each on the graph of the preceding stage.

use tpc_core::pipeline::{CompiledModel, compile_capture};
use tpc_core::placement::SplitMode;
use tpc_core::report::render_factors;
use tpc_ggml::capture::CapturedGraph;
use tpc_ir::stage::Stage;
use tpc_ir::text::{self, ParsedGraph};
use tpc_ir::{DType, Graph, Verified, stage};
use tpc_passes::machine::Topology;
use tpc_passes::machine::Workload;
use tpc_passes::prove::{Proof, Refutation};
use tpc_passes::rewrite::{Limits, Machine, RULES};

use crate::case::Case;
use crate::expectation::Reported;
use crate::frontend::Frontend;
use crate::outcome::Outcome;

/// Returns a captured graph with the layers of the text, or with one layer.
pub(crate) fn captured(parsed: &ParsedGraph) -> Result<CapturedGraph, String> {
    let last = parsed.graph.insts().filter_map(|(_, data)| data.layer);
    Ok(CapturedGraph {
        graph: verified(&parsed.graph)?,
        batch: Vec::new(),
        n_layer: last.max().map_or(1, |last| last.saturating_add(1)),
        lines: Vec::new(),
        notes: Vec::new(),
        records: Vec::new(),
        leaves: Vec::new(),
        results: Vec::new(),
    })
}

fn compiled(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<CompiledModel, String> {
    let placement = (frontend.placement)(&case.options, DType::F16, SplitMode::Tensor)
        .map_err(|d| format!("`; options`: {}", d[0]))?;
    compile_capture(&captured(parsed)?, &placement)
        .map_err(|d| format!("no plan: {}: {}", d[0].code, d[0]))
}

pub(crate) fn place(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(compiled(case, parsed, frontend)?.planned.graph.to_string())
}

pub(crate) fn factors(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(render_factors(&compiled(case, parsed, frontend)?))
}

pub(crate) fn plan(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(tpc_passes::plan::print(
        &compiled(case, parsed, frontend)?.planned,
    ))
}

pub(crate) fn shard(
    case: &Case,
    parsed: &ParsedGraph,
    frontend: &Frontend,
) -> Result<String, String> {
    Ok(compiled(case, parsed, frontend)?.eager.to_string())
}

fn verified<S: Stage>(graph: &Graph) -> Result<Verified<S>, String> {
    Verified::new(graph.clone()).map_err(|v| format!("the graph is not valid: {v}"))
}

pub(crate) fn rewrite(parsed: &ParsedGraph) -> Result<String, String> {
    let sharded = verified(&parsed.graph)?;
    let (topology, workload) = (Topology::default(), Workload::new(4096, 0, 512, 1));
    let machine = Machine {
        topology: &topology,
        workload: &workload,
    };
    let out = tpc_passes::rewrite::rewrite(&sharded, machine, Limits::default(), RULES);
    Ok(verified::<stage::Sharded>(&out.graph)?.to_string())
}

pub(crate) fn lower(parsed: &ParsedGraph) -> Result<String, String> {
    let sharded = verified(&parsed.graph)?;
    let programs = tpc_passes::lower::lower(&sharded).map_err(|e| e.to_string())?;
    Ok(verified::<stage::Programs>(&programs)?.to_string())
}

/// Prints simplified programs, and proves that they compute the same values.
pub(crate) fn canonicalise(parsed: &ParsedGraph) -> Result<String, String> {
    let before: Verified<stage::Programs> = verified(&parsed.graph)?;
    let after = tpc_passes::canonicalise::canonicalise(Graph::clone(&before));
    let after = verified::<stage::Programs>(&after)?;
    let again = tpc_passes::canonicalise::canonicalise(Graph::clone(&after));
    if again != *after {
        return Err(format!("a second run of the pass changes more:\n{again}"));
    }
    Ok(after.to_string())
}

fn proved(model: &Graph, programs: &Graph) -> Result<Result<Proof, Box<Refutation>>, String> {
    let (model, programs) = (verified(model)?, verified(programs)?);
    Ok(tpc_passes::prove::prove(&model, &programs))
}

/// Proves the programs in the section. A refusal is on the line of the refused op.
pub(crate) fn prove(case: &Case, model: &ParsedGraph) -> Outcome {
    let below = case.below();
    let programs = match text::parse(below) {
        Ok(p) => p,
        Err(e) => return Outcome::output(Err(format!("the programs do not parse: {}", e[0]))),
    };
    let refutation = match proved(&model.graph, &programs.graph) {
        Ok(Err(refutation)) => refutation,
        Ok(Ok(_)) => return Outcome::default(),
        Err(e) => return Outcome::output(Err(e)),
    };
    let offset = case.section.as_ref().map_or(0, |s| s.body);
    let line = refutation.inst.map_or(0, |inst| {
        let span = programs
            .spans
            .get(text::Entity::Inst(inst))
            .unwrap_or_default();
        case.line_at(offset + span.start)
    });
    Outcome::reported(vec![Reported {
        line,
        code: tpc_diag::codes::UNPROVED.id.to_owned(),
        message: refutation.to_string(),
    }])
}
