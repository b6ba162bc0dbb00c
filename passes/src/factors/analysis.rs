//! What planning needs to know of the inferred factors, in tables.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::factor::Var;
use tpc_ir::op::{Role, Rule};
use tpc_ir::{Dim, Graph, Inst, Op, Place, RANK, Value};

use super::Factors;
use crate::place::group_of;
use tpc_ir::factor::Axes;

/// One summand of a tensor: the leaves of each axis, major first. A tensor without sums has one term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Leaves per axis.
    pub axes: [Vec<Var>; RANK],
}

impl Term {
    /// Every leaf of the term.
    pub fn leaves(&self) -> impl Iterator<Item = Var> + '_ {
        self.axes.iter().flatten().copied()
    }
}

/// A role of an op with the terms of the factor it concerns.
#[derive(Clone, Debug)]
pub struct RoleUse {
    /// The role.
    pub role: Role,
    /// The leaves of each term of the factor, major first.
    pub terms: Vec<Vec<Var>>,
}

/// The roles of one instruction's factors.
#[derive(Clone, Debug, Default)]
pub struct InstFacts {
    /// Roles with the factors they concern.
    pub roles: Vec<RoleUse>,
}

/// Facts about a leaf.
#[derive(Clone, Debug, Default)]
pub struct LeafFacts {
    /// Instructions that need it whole.
    pub whole: Vec<Inst>,
    /// It occurs twice in one term of this value.
    pub twice: Option<Value>,
    /// It is looked up or selected by index but is not the whole of its axis.
    pub indexed_part: Option<Inst>,
    /// The leaf in front of it, in every axis that it occurs in.
    pub before: BTreeSet<Option<Var>>,
    /// Leaves that occur in a term with it.
    pub with: BTreeSet<Var>,
    /// Weights of groups, and states, that it runs through, in order.
    pub stored: Vec<Value>,
    /// A value of a group that the user wants whole on every device.
    pub kept: Option<Value>,
}

/// Tables over values, instructions and leaves.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// Per value, its terms.
    pub terms: Vec<Vec<Term>>,
    /// Per instruction, its roles.
    pub insts: Vec<InstFacts>,
    /// Per leaf that occurs anywhere, what is known of it.
    pub leaves: BTreeMap<Var, LeafFacts>,
}

impl Analysis {
    /// Collects the tables of a placed graph. Only what happens on groups of devices bears on what may be split.
    pub fn of(graph: &Graph, factors: &Factors) -> Analysis {
        let space = &factors.space;
        let on_group = |v: Value| matches!(graph.value(v).place, Place::Group(_));
        let mut leaves: BTreeMap<Var, LeafFacts> = BTreeMap::new();
        let mut terms = Vec::with_capacity(graph.values().len());
        for (value, _) in graph.values() {
            let axes = &factors.axes[value.index()];
            let per_axis: Vec<Vec<Vec<Var>>> = axes.iter().map(|&a| space.terms(a)).collect();
            let mut all = vec![Term {
                axes: Default::default(),
            }];
            for (axis, alternatives) in per_axis.iter().enumerate() {
                if let [one] = alternatives.as_slice() {
                    all.iter_mut().for_each(|t| t.axes[axis].clone_from(one));
                    continue;
                }
                all = all
                    .iter()
                    .flat_map(|t| {
                        alternatives.iter().map(|a| {
                            let mut t = t.clone();
                            t.axes[axis].clone_from(a);
                            t
                        })
                    })
                    .collect();
            }
            // A state of the host is cut into the devices' parts wherever they fetch it.
            let stored = match graph.def_op(value) {
                Op::Weight(_) => on_group(value),
                Op::State(_) => true,
                _ => false,
            };
            if !stored && !on_group(value) {
                terms.push(all);
                continue;
            }
            for t in &all {
                let in_term: Vec<Var> = t.leaves().collect();
                for axis in &t.axes {
                    for (i, &leaf) in axis.iter().enumerate() {
                        let facts = leaves.entry(leaf).or_default();
                        facts.before.insert(i.checked_sub(1).map(|j| axis[j]));
                        facts.with.extend(in_term.iter().filter(|&&l| l != leaf));
                        if in_term.iter().filter(|&&l| l == leaf).count() > 1 {
                            facts.twice = Some(value);
                        }
                        if stored && facts.stored.last() != Some(&value) {
                            facts.stored.push(value);
                        }
                    }
                }
            }
            terms.push(all);
        }
        let mut insts = Vec::with_capacity(graph.insts().len());
        for (inst, data) in graph.insts() {
            let operands: Vec<Axes> = data
                .operands
                .iter()
                .map(|v| factors.axes[v.index()])
                .collect();
            let results: Vec<Axes> = data
                .results
                .iter()
                .map(|v| factors.axes[v.index()])
                .collect();
            let here = group_of(graph, inst).is_some();
            let integers = data
                .results
                .iter()
                .any(|&v| graph.value(v).ty.dtype.is_integer());
            let mut facts = InstFacts::default();
            for (role, expr) in &factors.rules[inst.index()].roles {
                let Some(var) = Rule::role_vars(expr, &operands, &results) else {
                    continue;
                };
                let terms = space.terms(var);
                for term in &terms {
                    for (i, leaf) in term.iter().enumerate() {
                        let leaf = leaves.entry(*leaf).or_default();
                        match role {
                            _ if !here => {}
                            Role::Whole => leaf.whole.push(inst),
                            Role::Gather if i > 0 || terms.len() > 1 => {
                                leaf.indexed_part = Some(inst);
                            }
                            // Disjoint rows are told by the class alone: it splits the whole of the experts.
                            Role::Expert if term.len() > 1 || terms.len() > 1 => {
                                leaf.indexed_part = Some(inst);
                            }
                            // What each device has would be added up, and there are no sums of integers.
                            Role::Reduce | Role::Gather | Role::Expert if integers => {
                                leaf.whole.push(inst);
                            }
                            Role::Reduce | Role::Norm | Role::Gather | Role::Expert => {}
                        }
                    }
                }
                facts.roles.push(RoleUse { role: *role, terms });
            }
            insts.push(facts);
        }
        let here = |(i, _): &&(Inst, _)| group_of(graph, *i).is_some();
        for (inst, _) in factors.opaque.iter().filter(here) {
            let data = graph.inst(*inst);
            for v in data.operands.iter().chain(&data.results) {
                for leaf in terms[v.index()].iter().flat_map(Term::leaves) {
                    leaves.entry(leaf).or_default().whole.push(*inst);
                }
            }
        }
        Analysis {
            terms,
            insts,
            leaves,
        }
    }

    /// Keeps these values whole on every device of their groups.
    pub fn keep_whole(&mut self, values: &[Value]) {
        for &v in values {
            for leaf in self.terms[v.index()].iter().flat_map(Term::leaves) {
                self.leaves.entry(leaf).or_default().kept = Some(v);
            }
        }
    }

    /// The product of the sizes of some leaves.
    pub fn product(factors: &Factors, leaves: &[Var]) -> Dim {
        Dim::product(leaves.iter().map(|&v| factors.space.size(v))).unwrap_or(Dim::ZERO)
    }
}
