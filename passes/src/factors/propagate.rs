//! Where pending sums arise, how far they travel, and where they must be reduced.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::op::{ActiveRoles, OperandState, Role, unreduced_result};
use tpc_ir::{Class, Graph, Group, Inst, Op, Place, Unreduced, Value};

use super::{Analysis, Factors};
use crate::place::group_of;
use crate::users::Users;

/// Says which class splits a leaf.
pub trait Selection {
    /// The class that splits `leaf` among the devices of `group`, alone or in a chain.
    fn class_of(&self, group: Group, leaf: Var) -> Option<Class>;
}

/// What follows from a selection for a range of instructions.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Per value (by index; values outside the range are [`Unreduced::None`]), the pending state of what the op
    /// defines, before any reduction.
    pub defined: Vec<(Value, Unreduced)>,
    /// Values that are reduced right after their definition.
    pub reduced: Vec<Value>,
    /// Norms whose axis is split.
    pub norms: Vec<Inst>,
}

/// Why a selection cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Clash {
    /// A contraction over several segments is split in some of them only.
    MixedSegments(Inst),
    /// A value would be a pending sum and split at once.
    PendingAndSplit(Value),
}

/// Propagates pending sums through `insts` (in program order, closed under dependency except for whole values from
/// outside).
///
/// # Errors
/// When the selection cannot be carried out.
pub fn propagate(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    users: &Users,
    insts: &[Inst],
    selection: &dyn Selection,
) -> Result<Flow, Clash> {
    let settle = |must: &mut BTreeSet<Value>| loop {
        let before = must.len();
        let flow = run(graph, factors, analysis, users, insts, selection, must)?;
        if must.len() == before {
            return Ok(flow);
        }
    };
    let mut must: BTreeSet<Value> = BTreeSet::new();
    let mut flow = settle(&mut must)?;
    // Where a pending value fans out into several reductions, one reduction at the value itself may replace them.
    let candidates: Vec<Value> = flow
        .defined
        .iter()
        .filter(|(v, p)| *p != Unreduced::None && users.of(*v).len() > 1 && !must.contains(v))
        .map(|(v, _)| *v)
        .collect();
    for v in candidates {
        let mut tried = must.clone();
        tried.insert(v);
        let other = settle(&mut tried)?;
        if other.reduced.len() < flow.reduced.len() {
            must = tried;
            flow = other;
        }
    }
    Ok(flow)
}

/// The roles of `inst` that meet a selected leaf.
///
/// # Errors
/// When a contraction is split in some segments only.
pub fn active_roles(
    graph: &Graph,
    analysis: &Analysis,
    inst: Inst,
    selection: &dyn Selection,
) -> Result<ActiveRoles, Clash> {
    let mut active = ActiveRoles::default();
    let Some(group) = group_of(graph, inst) else {
        return Ok(active);
    };
    for role in &analysis.insts[inst.index()].roles {
        let hit = |t: &Vec<Var>| t.iter().any(|&l| selection.class_of(group, l).is_some());
        let hits = role.terms.iter().filter(|t| hit(t)).count();
        if hits == 0 {
            continue;
        }
        if hits < role.terms.len() {
            return Err(Clash::MixedSegments(inst));
        }
        match role.role {
            Role::Whole => return Err(Clash::MixedSegments(inst)),
            Role::Reduce => active.reduce = true,
            Role::Norm => active.norm = true,
            Role::Gather => active.gather = true,
            Role::Expert => {
                active.expert = role
                    .terms
                    .iter()
                    .flatten()
                    .find_map(|&l| selection.class_of(group, l));
            }
        }
    }
    Ok(active)
}

fn run(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    users: &Users,
    insts: &[Inst],
    selection: &dyn Selection,
    must: &mut BTreeSet<Value>,
) -> Result<Flow, Clash> {
    let mut flow = Flow::default();
    // State of values defined in this range, after reduction; few are pending at a time.
    let mut pending: Vec<(Value, Unreduced)> = Vec::new();
    let inside = |inst: Inst| insts.binary_search(&inst).is_ok();
    let split = |v: Value| {
        let Place::Group(group) = graph.value(v).place else {
            return false;
        };
        analysis.terms[v.index()]
            .iter()
            .any(|t| t.leaves().any(|l| selection.class_of(group, l).is_some()))
    };
    for &inst in insts {
        let data = graph.inst(inst);
        if data.op.is_leaf() {
            continue;
        }
        let active = active_roles(graph, analysis, inst, selection)?;
        let states: Vec<OperandState> = data
            .operands
            .iter()
            .map(|&v| OperandState {
                unreduced: pending
                    .iter()
                    .find(|(w, _)| *w == v)
                    .map_or(Unreduced::None, |(_, p)| *p),
                split: split(v),
            })
            .collect();
        let any_pending = states.iter().any(|s| s.unreduced != Unreduced::None);
        let mut result = Unreduced::None;
        if active != ActiveRoles::default() || any_pending {
            let rule = &factors.rules[inst.index()];
            let all_waiting = || -> Vec<usize> {
                (0..states.len())
                    .filter(|&i| states[i].unreduced != Unreduced::None)
                    .collect()
            };
            let lands_split = data.results.iter().any(|&v| split(v));
            result = match if active.norm {
                let waiting = all_waiting();
                if waiting.is_empty() {
                    Ok(Unreduced::None)
                } else {
                    Err(waiting)
                }
            } else {
                unreduced_result(rule, &states, active)
            } {
                // A sum that is still pending cannot be split.
                Ok(p) if p != Unreduced::None && lands_split && any_pending => {
                    for i in all_waiting() {
                        must.insert(producer(graph, data.operands[i], &inside));
                    }
                    p
                }
                Ok(p) => p,
                Err(waiting) => {
                    for i in waiting {
                        must.insert(producer(graph, data.operands[i], &inside));
                    }
                    let whole: Vec<OperandState> = states
                        .iter()
                        .map(|s| OperandState {
                            unreduced: Unreduced::None,
                            ..*s
                        })
                        .collect();
                    unreduced_result(rule, &whole, active).unwrap_or(Unreduced::None)
                }
            };
            if active.norm {
                flow.norms.push(inst);
            }
        }
        for &v in &data.results {
            if result != Unreduced::None {
                if split(v) {
                    if any_pending {
                        // Told once more when the operands are whole.
                        continue;
                    }
                    return Err(Clash::PendingAndSplit(v));
                }
                let escapes = users.is_output(v) || users.of(v).iter().any(|&u| !inside(u));
                if escapes {
                    must.insert(producer(graph, v, &inside));
                }
                flow.defined.push((v, result));
                if must.contains(&v) {
                    flow.reduced.push(v);
                } else {
                    pending.push((v, result));
                }
            }
        }
    }
    Ok(flow)
}

/// Where the sum of `v` is best done: at the op that first defined its elements, before views select among them.
fn producer(graph: &Graph, mut v: Value, inside: &dyn Fn(Inst) -> bool) -> Value {
    loop {
        let (inst, _) = graph.value(v).def;
        let data = graph.inst(inst);
        match &data.op {
            op if op.is_layout() || matches!(op, Op::Slice(_)) => {
                let from = data.operands[0];
                if !inside(graph.value(from).def.0) {
                    return v;
                }
                v = from;
            }
            _ => return v,
        }
    }
}
