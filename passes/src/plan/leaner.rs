//! The cheapest split that stores less, for a tensor of which devices hold parts more than once.

use tpc_ir::{Place, Value};

use super::alternative::{Alternatives, Cost, Replacement};
use super::options::SplitOption;
use super::{PlanRequest, PlannedGraph};
use crate::factors::Summand;

/// A split that stores less than the planner's choice, with both costs in the layers that would change.
#[derive(Clone, Debug)]
pub struct LeanerSplit {
    /// The split.
    pub option: SplitOption,
    /// The layers that would change; `None` for the prologue and the epilogue.
    pub layers: Vec<Option<u32>>,
    /// The cost of the planner's choice.
    pub chosen: Cost,
    /// The cost with [`Self::option`] and the best compatible other options.
    pub alternative: Cost,
}

/// Returns the cheapest split of one of the value's factors that stores less. `None` if no factor has such a split.
pub fn leaner_split(
    planned: &PlannedGraph,
    request: &PlanRequest,
    value: Value,
) -> Option<LeanerSplit> {
    let Place::Group(group) = planned.graph.value(value).place else {
        return None;
    };
    let device_weights = request.stage_device_weights(group.index());
    let alternatives = Alternatives::new(planned, request, group, &device_weights);
    let mut leaves: Vec<_> = planned.analysis.summands[value.index()]
        .iter()
        .flat_map(Summand::leaves)
        .collect();
    leaves.sort_unstable();
    leaves.dedup();
    let mut best: Option<LeanerSplit> = None;
    for option in leaves.iter().flat_map(|&l| alternatives.options(l)) {
        let Replacement {
            layers,
            chosen,
            cost,
            ..
        } = alternatives.replace(&option);
        let Some(alternative) = cost else { continue };
        let stored = |c: &Cost| c.bytes.iter().sum::<f64>();
        let loss = |a: &Cost, c: &Cost| a.price_us - c.price_us;
        let cheaper =
            |b: &LeanerSplit| loss(&alternative, &chosen) < loss(&b.alternative, &b.chosen);
        if stored(&alternative) < stored(&chosen) && best.as_ref().is_none_or(cheaper) {
            best = Some(LeanerSplit {
                option,
                layers,
                chosen,
                alternative,
            });
        }
    }
    best
}
