//! Predicts the times of tpc's kernels on the cards of a plan.

use std::collections::BTreeMap;

use tpc_core::cards::{self, CardMatch};
use tpc_core::pipeline::CompiledModel;
use tpc_core::placement::Placement;
use tpc_core::report::{StepKernel, StepReport, StepTimes};
use tpc_cuda::CudaTarget;
use tpc_cuda::executor::{PlannedNode, planned_step};
use tpc_cuda::step_model::{
    Card, CardLink, DECODE_ERROR, EDGE_US, Launching, PROMPT_ERROR, PredictedKernel,
    StepPrediction, predict, predict_serial, table,
};
use tpc_ir::program::Program;
use tpc_ir::{Bindings, Symbol};
use tpc_passes::machine::{Engine, Link, LinkKind};

use crate::error::Error;
use crate::prepared::program;

/// The measured bandwidth of a card, in bytes per second: the product with the output matrix (`docs/src/card-report.md`).
const MEASURED_BANDWIDTH: [(&str, f64); 1] = [("H200 SXM", 3.4e12)];

/// Returns the figures of a plan's cards; `None` if a device is not a card that tpc has code for.
pub fn cards_of(placement: &Placement) -> Option<Vec<Card>> {
    let devices = placement.devices.iter().enumerate();
    devices
        .map(|(i, d)| card(placement, i, d.card.as_deref()?))
        .collect()
}

fn card(placement: &Placement, device: usize, name: &str) -> Option<Card> {
    let profile = placement.topology.device(device);
    let (CardMatch::Card(known) | CardMatch::Meant { card: known, .. }) =
        cards::find(name, &[], cards::table())
    else {
        return None;
    };
    let (major, minor) = known.capability.as_deref()?.split_once('.')?;
    let capability = (major.parse().ok()?, minor.parse().ok()?);
    let processor = profile.processor?;
    let own = Card::new(
        &known.name,
        capability,
        (processor.units, processor.clock),
        (profile.bandwidth, profile.flops),
    )?;
    let measured = MEASURED_BANDWIDTH.iter().find(|(n, _)| *n == known.name);
    Some(match measured {
        Some((_, bandwidth)) => own.with_measured_bandwidth(*bandwidth),
        None => own,
    })
}

/// Returns the link of an edge. An edge without a direct link takes as much longer as the link's latency is longer than
/// a direct link's.
fn edge(link: Link) -> CardLink {
    let direct = LinkKind::NvLink.latency_us();
    CardLink {
        bandwidth: link.bandwidth,
        edge_us: EDGE_US + (link.latency_us - direct).max(0.0),
    }
}

/// The launches of a token and of a prompt.
#[derive(Clone, Debug)]
pub struct PlannedSteps {
    /// A batch of one token, with its sizes.
    pub token: (Vec<PlannedNode>, Bindings),
    /// The largest batch, with its sizes.
    pub prompt: (Vec<PlannedNode>, Bindings),
}

/// Plans the launches of a token and of a prompt on cards.
///
/// # Errors
///
/// Returns an error if the cards do not support an op, or a size overflows.
pub fn planned_steps(
    compiled: &CompiledModel,
    placement: &Placement,
    cards: &[Card],
) -> Result<PlannedSteps, Error> {
    let program: Program = program(compiled, placement, &CudaTarget)?;
    let units: Vec<u32> = cards.iter().map(|c| c.multiprocessors).collect();
    let last = program.shapes.len().saturating_sub(1);
    let workload = &compiled.request.workload;
    let steps = |shape: usize, sizes: Bindings| {
        // The cache has the depth, and the tokens of the batch.
        let sizes = sizes.in_units(program.graph.cell_unit.0);
        let cells = placement.depth.saturating_add(sizes.get(Symbol::NTokens));
        let caches = [
            (Symbol::NKv, compiled.caches.n_ctx),
            (Symbol::NKvSwa, compiled.caches.n_ctx_swa),
        ];
        let sizes = caches.into_iter().fold(sizes, |sizes, (symbol, most)| {
            sizes.with(symbol, cells.min(most))
        });
        planned_step(&program, &units, shape, &sizes).map(|nodes| (nodes, sizes))
    };
    Ok(PlannedSteps {
        token: steps(0, workload.decode)?,
        prompt: steps(last, workload.prefill)?,
    })
}

/// Predicts the times of a plan's kernels. Returns `None` if the engine is not tpc, the plan needs several machines, a
/// device is not a card, the cards do not support an op, or the table of instruction counts lacks their target.
pub fn step_report(compiled: &CompiledModel, placement: &Placement) -> Option<StepReport> {
    // The model has edges between cards, but no messages over a network.
    if placement.engine != Engine::Tpc || placement.is_cluster() {
        return None;
    }
    let cards = cards_of(placement)?;
    let steps = planned_steps(compiled, placement, &cards).ok()?;
    let link = |a: usize, b: usize| edge(placement.topology.link_between(a, b));
    let of = |(nodes, sizes): &(Vec<PlannedNode>, Bindings)| {
        let launching = Launching::Programmatic;
        let predicted = predict(nodes, &cards, &link, (launching, table())).ok()?;
        Some(times(&predicted, sizes))
    };
    Some(StepReport {
        card: cards.first()?.name.clone(),
        token: of(&steps.token)?,
        prompt: of(&steps.prompt)?,
    })
}

/// Predicted times of kernels whose launches run one after another, as a profile measures them.
#[derive(Clone, Debug)]
pub struct SerialTimes {
    /// The card of the first device.
    pub card: String,
    /// Microseconds of a launch by kernel, in a batch of one token.
    pub token: BTreeMap<String, f64>,
    /// Microseconds of a launch by kernel, in the largest batch.
    pub prompt: BTreeMap<String, f64>,
}

/// Predicts the times of kernels that run one after another. Returns `None` in the cases of [`step_report`].
pub fn serial_times(compiled: &CompiledModel, placement: &Placement) -> Option<SerialTimes> {
    let cards = cards_of(placement)?;
    let card = cards.first()?;
    let steps = planned_steps(compiled, placement, &cards).ok()?;
    let of = |nodes: &[PlannedNode]| -> Option<BTreeMap<String, f64>> {
        let kernels = predict_serial(nodes, card, table()).ok()?;
        let each = |k: PredictedKernel| (k.kernel, k.us / k.launches.max(1) as f64);
        Some(kernels.into_iter().map(each).collect())
    };
    Some(SerialTimes {
        card: card.name.clone(),
        token: of(&steps.token.0)?,
        prompt: of(&steps.prompt.0)?,
    })
}

fn times(predicted: &StepPrediction, sizes: &Bindings) -> StepTimes {
    let tokens = sizes.get(Symbol::NTokens);
    let kernels = predicted.kernels.iter().map(|k| StepKernel {
        kernel: k.kernel.clone(),
        launches: k.launches as u64,
        us_each: k.us / k.launches.max(1) as f64,
        us: k.us,
        share: k.us / predicted.us.max(1e-9),
        bound: k.bound.name().to_owned(),
        weight_bytes: k.weight_bytes,
    });
    StepTimes {
        tokens,
        cells: sizes.get(Symbol::NKv),
        us: predicted.us,
        tps: tokens as f64 / (predicted.us.max(1e-9) / 1e6),
        error: if tokens > 1 {
            PROMPT_ERROR
        } else {
            DECODE_ERROR
        },
        measured: tokens == 1,
        kernels: kernels.collect(),
        edges_us: predicted.edges_us,
        other_us: predicted.other_us,
    }
}
