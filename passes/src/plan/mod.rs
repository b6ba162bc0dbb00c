//! Planning: the factors to split over the devices of each group, and their ranges.
//!
//! [`plan`] places a model's graph, infers its factors and cuts it into [layer groups](LayerGroup). For each stage,
//! [`choose`] finds the cheapest assignment of compatible [options](SplitOption), priced by a [`Pricer`]. [`estimate`]
//! prices finished plans by their [`Bill`], and [`explain_split`] explains them.

mod alternative;
mod bill;
mod breakdown;
mod breaking;
mod choice;
mod choose;
mod components;
mod device_weights;
mod estimate;
mod exact;
#[cfg(test)]
mod exhaustive;
mod explanation;
mod kind;
mod layer_group;
mod leaner;
mod lower_bound;
mod options;
mod price;
mod print;
mod problem;
mod ranges;
mod request;
mod search;
mod situation;
mod timeline;

pub use alternative::Cost;
pub use bill::{Bill, KernelCount, Times};
pub use breakdown::Breakdown;
pub use choice::Choice;
pub use choose::choose;
pub use estimate::{Estimate, estimate};
pub use explanation::{
    FactorExplanation, FactorFacts, ForbiddenSplit, SplitExplanation, Verdict, explain_split, facts,
};
pub use layer_group::{LayerGroup, Signature, layer_groups};
pub use leaner::{LeanerSplit, leaner_split};
pub use options::{Granules, Refusal, SplitOption, options_for, refusal};
pub use price::{Price, Pricer};
pub use print::print;
pub use ranges::{ChainCuts, chain, proportional};
pub use request::PlanRequest;
pub use situation::ModelKind;
pub use timeline::{Event, is_copy_of_input, roofline, timeline};

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::program::{Company, SumOrder};
use tpc_ir::verify::Violations;
use tpc_ir::{Budget, BudgetExceeded, Graph, Group, Inst, Value, Verified, stage};

use breaking::breaking_insts;
use exact::{alike_in_layers, isolate};

use crate::factors::{Analysis, ExactOps, Factors, GraphFacts};
use crate::place::{PlacedGraph, place};
use crate::users::Users;

/// The reason why no plan exists.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PlanError {
    /// The placed graph does not verify, because of a bug in the placement.
    #[error(transparent)]
    Invalid(#[from] Violations),
    /// The sizes of the caches overflow if cells are counted in units.
    #[error("the sizes of the caches are too large")]
    Cells,
    /// The budget is exhausted.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
}

/// A placed graph with its factors and chosen splits.
#[derive(Clone, Debug)]
pub struct PlannedGraph {
    /// The graph, with places and copies.
    pub graph: Verified<stage::Placed>,
    /// The graph's factors.
    pub factors: Factors,
    /// Tables over the factors.
    pub analysis: Analysis,
    /// The readers of the graph's values.
    pub users: Users,
    /// The layer groups, in program order per device group.
    pub layer_groups: Vec<LayerGroup>,
    /// The chosen splits.
    pub choice: Choice,
}

impl PlannedGraph {
    /// Returns the graph and its analyses.
    pub fn graph_facts(&self) -> GraphFacts<'_> {
        GraphFacts {
            graph: &self.graph,
            factors: &self.factors,
            analysis: &self.analysis,
            users: &self.users,
        }
    }
}

/// Plans with the default budget.
///
/// # Errors
/// Returns the same errors as [`plan_within`].
pub fn plan(
    model: &Verified<stage::Model>,
    request: &PlanRequest,
) -> Result<PlannedGraph, PlanError> {
    plan_within(model, request, &Budget::default())
}

/// Places the ops of a model's graph and chooses splits.
///
/// For [`SumOrder::OneDevice`], ops whose sums would be added in another order are isolated (`exact.rs`), and the plan
/// is repeated until no such op is left.
///
/// # Errors
/// Returns an error if the budget is exhausted, or if a bug in the placement makes the placed graph invalid.
pub fn plan_within(
    model: &Verified<stage::Model>,
    request: &PlanRequest,
    budget: &Budget,
) -> Result<PlannedGraph, PlanError> {
    let in_units;
    let mut graph: &Graph = model;
    if request.cell_unit > 1 {
        in_units = model.in_units(request.cell_unit).ok_or(PlanError::Cells)?;
        graph = &in_units;
    }
    let placed = place(
        graph,
        &request.layer_placement,
        &request.devices,
        &request.topology,
        &request.workload,
    );
    if request.cell_unit > 1 {
        let divided = crate::cells::divide(&placed);
        return choose_splits(divided.placed, &divided.exact, request, budget);
    }
    let none = ExactOps::default();
    if request.sums != SumOrder::OneDevice {
        return choose_splits(placed, &none, request, budget);
    }
    let first = choose_splits(placed.clone(), &none, request, budget)?;
    let company = request.storage.company();
    let mut whole = alike_in_layers(&placed.graph, &breaking(&first, company));
    if whole.is_empty() {
        return Ok(first);
    }
    let crosses = |v: Value| crosses_layers(&first, v);
    loop {
        let isolated = isolate(&placed, &whole, &crosses);
        let planned = choose_splits(isolated.placed, &isolated.exact, request, budget)?;
        let found = breaking(&planned, company);
        let origins = found.iter().filter_map(|i| isolated.origins[i.index()]);
        let before = whole.len();
        whole.extend(alike_in_layers(&placed.graph, &origins.collect()));
        // Isolated ops split no sum, so the set grows until no op is left.
        if whole.len() == before {
            return Ok(planned);
        }
    }
}

fn breaking(planned: &PlannedGraph, company: Company) -> BTreeSet<Inst> {
    breaking_insts(planned.graph_facts(), &planned.choice, company)
}

/// True if several layers share a factor of the value's axis 0.
fn crosses_layers(planned: &PlannedGraph, v: Value) -> bool {
    let summands = planned.analysis.summands[v.index()].iter();
    let leaves: Vec<Var> = summands.flat_map(|s| s.axes[0].iter().copied()).collect();
    let has = |g: &&LayerGroup| leaves.iter().any(|l| g.leaves.contains(l));
    planned.layer_groups.iter().filter(has).nth(1).is_some()
}

fn choose_splits(
    placed: PlacedGraph,
    exact: &ExactOps,
    request: &PlanRequest,
    budget: &Budget,
) -> Result<PlannedGraph, PlanError> {
    let PlacedGraph { graph, mirrored } = placed;
    let graph = Verified::<stage::Placed>::new(graph)?;
    let factors = Factors::infer_within(&graph, exact, budget)?;
    let mut analysis = Analysis::new_within(&graph, &factors, budget)?;
    analysis.keep_whole(&mirrored);
    let users = Users::of_graph(&graph);
    analysis.store_as(request.storage, &graph, &users);
    let layer_groups = layer_groups(&graph, &analysis);
    let mut out = PlannedGraph {
        graph,
        factors,
        analysis,
        users,
        layer_groups,
        choice: Choice::none(),
    };
    let mut choice = Choice::none();
    choice.distinct = 0;
    for (stage, devices) in request.layer_placement.stages.iter().enumerate() {
        if devices.len() < 2 {
            continue;
        }
        let group = Group::new(stage);
        let own = |g: &&LayerGroup| g.group == group;
        let own: Vec<LayerGroup> = out.layer_groups.iter().filter(own).cloned().collect();
        let weights = request.stage_device_weights(stage);
        let pricer = Pricer::new(out.graph_facts(), request, devices, &weights);
        choice.join(choose(&pricer, group, &own, budget));
    }
    choice.distinct = choice.distinct.max(1);
    out.choice = choice;
    Ok(out)
}
