//! Explains a tensor's splits, factor by factor: the class, the reason for no split, or the price of a split.
//!
//! Alternatives are priced like the choice: with one option fixed and its conflicting options removed, every affected
//! layer group is searched again.

use std::collections::BTreeSet;

use tpc_ir::factor::{UnifyError, Var};
use tpc_ir::op::{Expr, Role, Slot};
use tpc_ir::{Class, Dim, Group, Inst, Place, Value};

use super::alternative::{Alternatives, Cost, Replacement};
use super::kind::kind_of;
use super::options::{Granules, Refusal, SplitOption, granules, refusal};
use super::{PlanRequest, PlannedGraph};
use crate::factors::Selection;
use crate::factors::{FactorPosition, Summand, factor_positions};

/// Facts about a factor that do not depend on the planner's choice.
#[derive(Clone, Debug)]
pub struct FactorFacts {
    /// The factor.
    pub leaf: Var,
    /// The factor's size.
    pub size: Dim,
    /// The factor's kind, as a phrase for messages; `None` if no weight or state has the factor.
    pub kind: Option<&'static str>,
    /// The valid ends of ranges.
    pub granules: Granules,
    /// The factor's positions in weights and states.
    pub through: Vec<FactorPosition>,
    /// The reason why the factor cannot be split, if any.
    pub forbidden: Option<ForbiddenSplit>,
}

/// The reason why a factor cannot be split.
#[derive(Clone, Debug, PartialEq)]
pub struct ForbiddenSplit {
    /// The reason, with the first op that causes it.
    pub reason: Refusal,
    /// The axes of that op with the factor, which must be whole.
    pub at: Vec<(Slot, usize)>,
    /// The reason why that op's factors do not unify, if any.
    pub cut: Option<UnifyError>,
    /// The number of further ops that need the factor whole.
    pub others: usize,
}

/// The planner's decision on a factor.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// A class splits the factor, alone or in a chain.
    Split {
        /// The class.
        class: Class,
        /// The layers that would change if the factor were whole; `None` for the prologue and the epilogue.
        layers: Vec<Option<u32>>,
        /// The cost of the planner's choice in these layers.
        chosen: Cost,
        /// The cost if the class's factors were whole, with the best other options; `None` if no assignment allows it.
        whole: Option<Cost>,
    },
    /// There is only one device.
    OneDevice,
    /// The tensor is not on a group of devices.
    SplitElsewhere,
    /// The factor must be whole.
    Forbidden(ForbiddenSplit),
    /// The factor could be split.
    Possible {
        /// The cheapest option.
        option: SplitOption,
        /// The chosen classes that `option` conflicts with.
        instead_of: Vec<Class>,
        /// The layers that would change; `None` for the prologue and the epilogue.
        layers: Vec<Option<u32>>,
        /// The cost of the planner's choice in these layers.
        chosen: Cost,
        /// The cost with `option` and the best compatible other options.
        alternative: Cost,
    },
    /// The factor's size allows a split, but every assignment with it contradicts itself.
    Contradiction {
        /// One of the factor's options.
        option: SplitOption,
    },
}

/// One factor of a tensor.
#[derive(Clone, Debug)]
pub struct FactorExplanation {
    /// Facts that do not depend on the plan.
    pub facts: FactorFacts,
    /// The planner's decision.
    pub verdict: Verdict,
}

/// The reasons for the splits of a tensor.
#[derive(Clone, Debug)]
pub struct SplitExplanation {
    /// The tensor, in the placed graph.
    pub value: Value,
    /// The factors of each axis, major first, per segment. A tensor that is not concatenated has one segment.
    pub segments: Vec<Summand>,
    /// The factors, in order of first appearance.
    pub factors: Vec<FactorExplanation>,
}

/// Returns the facts about `leaf`; `None` if no instruction on a group has the leaf.
pub fn facts(planned: &PlannedGraph, leaf: Var) -> Option<FactorFacts> {
    let PlannedGraph {
        graph,
        factors,
        analysis,
        ..
    } = planned;
    let stored = !analysis.leaves.get(&leaf)?.stored.is_empty();
    Some(FactorFacts {
        leaf,
        size: factors.space.size(leaf).clone(),
        kind: stored.then(|| kind_of(graph, analysis, &[leaf])),
        granules: granules(planned.graph_facts(), &[leaf]),
        through: factor_positions(analysis, leaf),
        forbidden: refusal(factors, analysis, leaf).map(|r| explain_refusal(planned, leaf, r)),
    })
}

fn explain_refusal(planned: &PlannedGraph, leaf: Var, reason: Refusal) -> ForbiddenSplit {
    let PlannedGraph {
        graph,
        factors,
        analysis,
        ..
    } = planned;
    let mut out = ForbiddenSplit {
        at: Vec::new(),
        cut: None,
        others: 0,
        reason,
    };
    let Refusal::Whole(inst) = out.reason else {
        return out;
    };
    let distinct: BTreeSet<Inst> = analysis.leaves[&leaf].whole.iter().copied().collect();
    out.others = distinct.len() - 1;
    let cut = factors.opaque.iter().find(|(i, _)| *i == inst);
    out.cut = cut.map(|(_, cut)| cut.clone());
    let data = graph.inst(inst);
    for (role, expr) in &factors.rules[inst.index()].roles {
        if let (Role::Whole | Role::Owned, Expr::Axis(slot, axis)) = (role, expr) {
            let v = match slot {
                Slot::Operand(i) => data.operands[*i],
                Slot::Result(i) => data.results[*i],
            };
            let summands = &analysis.summands[v.index()];
            if summands.iter().any(|t| t.axes[*axis].contains(&leaf)) {
                out.at.push((*slot, *axis));
            }
        }
    }
    out
}

/// Explains the splits of `value`, which is in the placed graph of `planned`, the plan of `request`.
pub fn explain_split(
    planned: &PlannedGraph,
    request: &PlanRequest,
    value: Value,
) -> SplitExplanation {
    let segments = planned.analysis.summands[value.index()].to_vec();
    let mut leaves: Vec<Var> = Vec::new();
    for leaf in segments.iter().flat_map(Summand::leaves) {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    let mut factors = Vec::new();
    if let Place::Group(group) = planned.graph.value(value).place {
        let device_weights = request.stage_device_weights(group.index());
        let alternatives = Alternatives::new(planned, request, group, &device_weights);
        for leaf in leaves {
            factors.extend(facts(planned, leaf).map(|facts| FactorExplanation {
                verdict: verdict(planned, &alternatives, group, device_weights.len(), &facts),
                facts,
            }));
        }
    } else {
        for leaf in leaves {
            factors.extend(facts(planned, leaf).map(|facts| FactorExplanation {
                verdict: Verdict::SplitElsewhere,
                facts,
            }));
        }
    }
    SplitExplanation {
        value,
        segments,
        factors,
    }
}

fn verdict(
    planned: &PlannedGraph,
    alternatives: &Alternatives<'_>,
    group: Group,
    devices: usize,
    facts: &FactorFacts,
) -> Verdict {
    if let Some(class) = planned.choice.class_of(group, facts.leaf) {
        let Replacement {
            layers,
            chosen,
            cost,
            ..
        } = alternatives.without(class);
        return Verdict::Split {
            class,
            layers,
            chosen,
            whole: cost,
        };
    }
    if let Some(forbidden) = &facts.forbidden {
        return Verdict::Forbidden(forbidden.clone());
    }
    if devices < 2 {
        return Verdict::OneDevice;
    }
    let options = alternatives.options(facts.leaf);
    let mut best: Option<(f64, Verdict)> = None;
    for option in &options {
        let Replacement {
            of,
            layers,
            chosen,
            cost,
        } = alternatives.replace(option);
        let Some(alternative) = cost else { continue };
        let loss = alternative.price_us - chosen.price_us;
        if best.as_ref().is_none_or(|(least, _)| loss < *least) {
            let verdict = Verdict::Possible {
                option: option.clone(),
                instead_of: of,
                layers,
                chosen,
                alternative,
            };
            best = Some((loss, verdict));
        }
    }
    match (best, options.into_iter().next()) {
        (Some((_, verdict)), _) => verdict,
        (None, Some(option)) => Verdict::Contradiction { option },
        (None, None) => {
            let size = facts.size.as_const().unwrap_or(0);
            let unit = facts.granules.hard.unwrap_or(size);
            Verdict::Forbidden(explain_refusal(planned, facts.leaf, Refusal::Granule(unit)))
        }
    }
}
