//! The reasons for the splits of a tensor, factor by factor: the class, the refusal, or the price of a split.
//!
//! An alternative is priced as the choice itself was. One option of the factor is fixed, and the chosen options that it
//! excludes are given up. Then the rest of every affected layer group is searched again.

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

/// The facts about a factor that do not depend on the choice.
#[derive(Clone, Debug)]
pub struct FactorFacts {
    /// The factor.
    pub leaf: Var,
    /// Its size.
    pub size: Dim,
    /// Its kind, for people; `None` if no weight or state has the factor.
    pub kind: Option<&'static str>,
    /// The positions at which ranges may end.
    pub granules: Granules,
    /// The weights and states that it runs through.
    pub through: Vec<FactorPosition>,
    /// The reason why it cannot be split, if there is one.
    pub forbidden: Option<ForbiddenSplit>,
}

/// The reason that a factor cannot be split.
#[derive(Clone, Debug, PartialEq)]
pub struct ForbiddenSplit {
    /// The reason, with the first op concerned if there are several.
    pub reason: Refusal,
    /// The axes of that op that must be whole and contain the factor.
    pub at: Vec<(Slot, usize)>,
    /// The reason why that op's rule does not hold, if it does not.
    pub cut: Option<UnifyError>,
    /// Further ops that need it whole.
    pub others: usize,
}

/// The outcome for a factor.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// A class splits it, alone or in a chain.
    Split {
        /// The class.
        class: Class,
        /// The layers that would change if it were whole; `None` stands for before the first layer and after the last.
        layers: Vec<Option<u32>>,
        /// The cost of the choice there.
        chosen: Cost,
        /// The cost with the factors of the class whole and the best other options; `None` if that cannot be carried
        /// out.
        whole: Option<Cost>,
    },
    /// There is one device only.
    OneDevice,
    /// The tensor is not on a group of devices.
    SplitElsewhere,
    /// It must be whole.
    Forbidden(ForbiddenSplit),
    /// It could be split.
    Possible {
        /// The cheapest option.
        option: SplitOption,
        /// Classes that it excludes.
        instead_of: Vec<Class>,
        /// The layers that would change; `None` stands for before the first layer and after the last.
        layers: Vec<Option<u32>>,
        /// The cost of the choice there.
        chosen: Cost,
        /// The cost with this option and the best others that are compatible with it.
        alternative: Cost,
    },
    /// Its size allows a split, but no assignment with it can be carried out.
    Contradiction {
        /// One of its options.
        option: SplitOption,
    },
}

/// One factor of a tensor.
#[derive(Clone, Debug)]
pub struct FactorExplanation {
    /// Its facts.
    pub facts: FactorFacts,
    /// Its outcome.
    pub verdict: Verdict,
}

/// The reasons for the splits of a tensor.
#[derive(Clone, Debug)]
pub struct SplitExplanation {
    /// The tensor, in the placed graph.
    pub value: Value,
    /// Its segments, with the factors of each axis, major first. A tensor in one piece has one segment.
    pub segments: Vec<Summand>,
    /// Every factor of it, in order of first appearance.
    pub factors: Vec<FactorExplanation>,
}

/// Returns the facts about `leaf`; `None` if no group of devices has an instruction with it.
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
        if let (Role::Whole, Expr::Axis(slot, axis)) = (role, expr) {
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

/// Explains the splits of a value of the placed graph in `planned`, the plan of `request`.
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
