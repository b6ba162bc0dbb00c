//! Propagates unreduced sums from their definition to their reduction.

use std::collections::BTreeSet;

use tpc_ir::factor::Var;
use tpc_ir::op::{ActiveRoles, OperandState, Role, Rule, unreduced_result};
use tpc_ir::{Class, Graph, Group, Inst, InstData, Place, Unreduced, Value};

use super::{Analysis, GraphFacts};
use crate::place::group_of;

/// The split leaves and their classes.
pub trait Selection {
    /// Returns the class that splits `leaf` in `group`, alone or in a chain.
    fn class_of(&self, group: Group, leaf: Var) -> Option<Class>;
}

/// The unreduced sums in a range of instructions.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// The unreduced values before any reduction. All other values are [`Unreduced::None`].
    pub defined: Vec<(Value, Unreduced)>,
    /// Values reduced at their definition.
    pub reduced: Vec<Value>,
    /// Norms over a split axis.
    pub norms: Vec<Inst>,
}

/// The reason why a selection of leaves is not possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PropagationConflict {
    /// Only some segments of a contraction are split.
    MixedSegments(Inst),
    /// A value would be both unreduced and split.
    UnreducedAndSplit(Value),
}

/// Propagates unreduced sums through `insts`. The instructions must be in program order and contain all their
/// dependences; values from outside are whole.
///
/// Reductions are delayed as far as the ops' rules allow. If an unreduced value has several readers, one reduction of
/// the value is compared with one reduction per reader.
///
/// # Errors
/// Returns the conflict if the selection is not possible.
pub fn propagate(
    facts: GraphFacts<'_>,
    insts: &[Inst],
    selection: &dyn Selection,
) -> Result<Flow, PropagationConflict> {
    let mut reduce_at: BTreeSet<Value> = BTreeSet::new();
    let mut flow = fixpoint(facts, insts, selection, &mut reduce_at)?;
    let candidates: Vec<Value> = flow
        .defined
        .iter()
        .filter(|(v, u)| {
            *u != Unreduced::None && facts.users.of(*v).len() > 1 && !reduce_at.contains(v)
        })
        .map(|(v, _)| *v)
        .collect();
    for v in candidates {
        let mut tried = reduce_at.clone();
        tried.insert(v);
        let other = fixpoint(facts, insts, selection, &mut tried)?;
        if other.reduced.len() < flow.reduced.len() {
            reduce_at = tried;
            flow = other;
        }
    }
    Ok(flow)
}

/// Returns the flow with reductions at `reduce_at`; adds further required reductions to `reduce_at`.
fn fixpoint(
    facts: GraphFacts<'_>,
    insts: &[Inst],
    selection: &dyn Selection,
    reduce_at: &mut BTreeSet<Value>,
) -> Result<Flow, PropagationConflict> {
    loop {
        let before = reduce_at.len();
        let mut pass = Pass {
            facts,
            insts,
            selection,
            reduce_at,
            unreduced: Vec::new(),
            flow: Flow::default(),
        };
        for &inst in insts {
            pass.inst(inst)?;
        }
        let flow = pass.flow;
        if reduce_at.len() == before {
            return Ok(flow);
        }
    }
}

/// Returns the roles of `inst` on selected leaves.
///
/// # Errors
/// Returns a conflict if only some segments of a contraction are split.
pub fn active_roles(
    graph: &Graph,
    analysis: &Analysis,
    inst: Inst,
    selection: &dyn Selection,
) -> Result<ActiveRoles, PropagationConflict> {
    let mut active = ActiveRoles::default();
    let Some(group) = group_of(graph, inst) else {
        return Ok(active);
    };
    for role in &analysis.insts[inst.index()].roles {
        let hit = |t: &Vec<Var>| t.iter().any(|&l| selection.class_of(group, l).is_some());
        let hits = role.summands.iter().filter(|t| hit(t)).count();
        if hits == 0 {
            continue;
        }
        if hits < role.summands.len() {
            return Err(PropagationConflict::MixedSegments(inst));
        }
        match role.role {
            Role::Whole => return Err(PropagationConflict::MixedSegments(inst)),
            Role::Owned => {}
            Role::Reduce => active.reduce = true,
            Role::Norm => active.norm = true,
            Role::Gather => active.gather = true,
            Role::Expert => {
                active.expert = role
                    .summands
                    .iter()
                    .flatten()
                    .find_map(|&l| selection.class_of(group, l));
            }
        }
    }
    Ok(active)
}

struct Pass<'a> {
    facts: GraphFacts<'a>,
    insts: &'a [Inst],
    selection: &'a dyn Selection,
    reduce_at: &'a mut BTreeSet<Value>,
    unreduced: Vec<(Value, Unreduced)>,
    flow: Flow,
}

impl Pass<'_> {
    fn inst(&mut self, inst: Inst) -> Result<(), PropagationConflict> {
        let GraphFacts {
            graph,
            factors,
            analysis,
            ..
        } = self.facts;
        let data = graph.inst(inst);
        if data.op.is_leaf() {
            return Ok(());
        }
        let active = active_roles(graph, analysis, inst, self.selection)?;
        let states: Vec<OperandState> = data.operands.iter().map(|&v| self.state(v)).collect();
        let any_unreduced = states.iter().any(|s| s.unreduced != Unreduced::None);
        let mut result = Unreduced::None;
        if active != ActiveRoles::default() || any_unreduced {
            result = self.result(data, &factors.rules[inst.index()], active, &states);
            if active.norm {
                self.flow.norms.push(inst);
            }
        }
        if result == Unreduced::None {
            return Ok(());
        }
        for &v in &data.results {
            self.define(v, result, any_unreduced)?;
        }
        Ok(())
    }

    fn inside(&self, inst: Inst) -> bool {
        self.insts.binary_search(&inst).is_ok()
    }

    fn is_split(&self, v: Value) -> bool {
        let Place::Group(group) = self.facts.graph.value(v).place else {
            return false;
        };
        let split = |l| self.selection.class_of(group, l).is_some();
        let summands = &self.facts.analysis.summands[v.index()];
        summands.iter().any(|t| t.leaves().any(split))
    }

    fn state(&self, v: Value) -> OperandState {
        let known = self.unreduced.iter().find(|(w, _)| *w == v);
        OperandState {
            unreduced: known.map_or(Unreduced::None, |(_, u)| *u),
            split: self.is_split(v),
        }
    }

    /// Returns the state of an instruction's results, and requests reductions of operands that must be whole.
    fn result(
        &mut self,
        data: &InstData,
        rule: &Rule,
        active: ActiveRoles,
        states: &[OperandState],
    ) -> Unreduced {
        let unreduced: Vec<usize> = (0..states.len())
            .filter(|&i| states[i].unreduced != Unreduced::None)
            .collect();
        let result = if !active.norm {
            unreduced_result(rule, states, active)
        } else if unreduced.is_empty() {
            Ok(Unreduced::None)
        } else {
            Err(unreduced.clone())
        };
        match result {
            Ok(u) => {
                // An unreduced sum cannot be split.
                let lands_split = data.results.iter().any(|&v| self.is_split(v));
                if u != Unreduced::None && lands_split {
                    self.reduce(data, &unreduced);
                }
                u
            }
            Err(operands) => {
                self.reduce(data, &operands);
                let reduced = |s: &OperandState| OperandState {
                    unreduced: Unreduced::None,
                    ..*s
                };
                let states: Vec<OperandState> = states.iter().map(reduced).collect();
                unreduced_result(rule, &states, active).unwrap_or(Unreduced::None)
            }
        }
    }

    fn reduce(&mut self, data: &InstData, operands: &[usize]) {
        for &i in operands {
            let at = self.producer(data.operands[i]);
            self.reduce_at.insert(at);
        }
    }

    fn define(
        &mut self,
        v: Value,
        unreduced: Unreduced,
        any_unreduced: bool,
    ) -> Result<(), PropagationConflict> {
        if self.is_split(v) {
            // `result` requested reductions of the operands; the next pass decides.
            if any_unreduced {
                return Ok(());
            }
            return Err(PropagationConflict::UnreducedAndSplit(v));
        }
        let users = self.facts.users;
        if users.is_output(v) || users.of(v).iter().any(|&u| !self.inside(u)) {
            let at = self.producer(v);
            self.reduce_at.insert(at);
        }
        self.flow.defined.push((v, unreduced));
        if self.reduce_at.contains(&v) {
            self.flow.reduced.push(v);
        } else {
            self.unreduced.push((v, unreduced));
        }
        Ok(())
    }

    /// Returns the op result that `v` is a view of.
    fn producer(&self, mut v: Value) -> Value {
        let graph = self.facts.graph;
        loop {
            let (inst, _) = graph.value(v).def;
            let data = graph.inst(inst);
            if !data.op.is_view() {
                return v;
            }
            let from = data.operands[0];
            if !self.inside(graph.value(from).def.0) {
                return v;
            }
            v = from;
        }
    }
}
