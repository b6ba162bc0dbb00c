//! Factor inference: unifies the factor trees of operands and results by the ops' rules.
//!
//! The result is a set of *leaves*: factors that no op cuts, each in axes of weights, activations and caches. A plan
//! chooses the leaves to split.

mod analysis;
mod cut;
mod exact;
mod propagate;
mod report;
mod rule_cache;

pub use analysis::{Analysis, GraphFacts, InstFacts, LeafFacts, RoleUse, Summand};
pub use cut::{CutReshape, cut_reshape};
pub use exact::ExactOps;
pub use propagate::{Flow, PropagationConflict, Selection, active_roles, propagate};
pub use report::{FactorPosition, activations, factor_positions};

use std::collections::BTreeMap;
use std::sync::Arc;

use tpc_ir::factor::{Axes, Label, Space, UnifyError, Var, solve};
use tpc_ir::op::{Role, Rule};
use tpc_ir::{
    Budget, BudgetExceeded, Dim, Graph, Inst, Op, OpLocation, Output, RANK, Resource, Value,
};

use rule_cache::RuleCache;

const FACTORS: &str = "factor inference";

fn copy_source(graph: &Graph, mut v: Value) -> Value {
    while let Op::Copy(_) = graph.def_op(v) {
        v = graph.inst(graph.value(v).def.0).operands[0];
    }
    v
}

/// The factor trees of all values of a graph.
#[derive(Clone, Debug)]
pub struct Factors {
    /// The variables.
    pub space: Space,
    /// The axes of each value.
    pub axes: Vec<Axes>,
    /// The rule of each instruction. Instructions that differ only in names share a rule.
    pub rules: Vec<Arc<Rule>>,
    /// Instructions whose factors do not unify, with the reason. Their operands and results stay whole.
    pub opaque: Vec<(Inst, UnifyError)>,
}

impl Factors {
    /// Infers the factors of a valid graph. Instructions over the default budget become opaque.
    pub fn infer(graph: &Graph) -> Factors {
        let most = Budget::default().remaining(Resource::Steps);
        Factors::infer_in(graph, &ExactOps::default(), Space::with_limit(most)).0
    }

    /// Infers factors within a budget. No factor of `exact` ops is summed over by several devices.
    ///
    /// # Errors
    /// Returns the instruction that exhausts the budget.
    pub fn infer_within(
        graph: &Graph,
        exact: &ExactOps,
        budget: &Budget,
    ) -> Result<Factors, BudgetExceeded> {
        let most = budget.remaining(Resource::Steps);
        let (out, stopped) = Factors::infer_in(graph, exact, Space::with_limit(most));
        let spot = || stopped.map(|inst| OpLocation::of(graph, inst));
        budget.spend(Resource::Steps, out.space.work(), FACTORS, spot)?;
        Ok(out)
    }

    /// Returns the factors, and the first instruction over the space's limit.
    fn infer_in(graph: &Graph, exact: &ExactOps, mut space: Space) -> (Factors, Option<Inst>) {
        let unit = space.leaf_with_label(Dim::ONE, Label::Free);
        // A value has about three axes larger than 1, and an op adds few factors.
        space.reserve(4 * graph.values().len());
        let mut axes: Vec<Axes> = Vec::with_capacity(graph.values().len());
        for (_, v) in graph.values() {
            let mut a = [unit; RANK];
            for (axis, dim) in a.iter_mut().zip(&v.ty.dims) {
                if !dim.is_one() {
                    *axis = space.leaf(dim.clone());
                }
            }
            axes.push(a);
        }
        let mut out = Factors {
            space,
            axes,
            rules: Vec::with_capacity(graph.insts().len()),
            opaque: Vec::new(),
        };
        let mut known = RuleCache::default();
        let mut experts: Vec<(Value, Var)> = Vec::new();
        for (inst, data) in graph.insts() {
            let rule = exact.rule(inst, &data.op, known.rule(graph, inst));
            let operands: Vec<Axes> = data.operands.iter().map(|v| out.axes[v.index()]).collect();
            let results: Vec<Axes> = data.results.iter().map(|v| out.axes[v.index()]).collect();
            if let Err((_, cut)) = solve(&mut out.space, &rule, &operands, &results) {
                out.opaque.push((inst, cut));
            }
            // Ops that use the same ids number the experts in the same way.
            for (role, expr) in &rule.roles {
                let (Role::Expert, Some(var)) = (role, Rule::role_var(expr, &operands, &results))
                else {
                    continue;
                };
                let Some(&ids) = data.operands.last() else {
                    continue;
                };
                let ids = copy_source(graph, ids);
                match experts.iter().find(|(v, _)| *v == ids) {
                    Some(&(_, known)) => {
                        if let Err(cut) = out.space.unify(&[known], &[var]) {
                            out.opaque.push((inst, cut));
                        }
                    }
                    None => experts.push((ids, var)),
                }
            }
            out.rules.push(rule);
        }
        for output in &graph.outputs {
            if let Output::State { state, value } = output {
                for axis in 0..RANK {
                    let (a, b) = (out.axes[state.index()][axis], out.axes[value.index()][axis]);
                    if let Err(cut) = out.space.unify(&[a], &[b]) {
                        // Neither the state nor its new content may be split.
                        out.opaque.push((graph.value(*state).def.0, cut.clone()));
                        out.opaque.push((graph.value(*value).def.0, cut));
                    }
                }
            }
        }
        out.space.compress();
        let mut opaque = out.opaque.iter();
        let stopped = opaque
            .find(|(_, cut)| *cut == UnifyError::Work)
            .map(|o| o.0);
        (out, stopped)
    }

    /// True if a second run of all rules would not refine any factor.
    pub fn is_stable(&self, graph: &Graph) -> bool {
        let mut again = self.clone();
        // Compare leaves by first appearance, because another variable may represent the same leaf.
        let leaves = |f: &Factors| -> Vec<(usize, Dim)> {
            let mut seen: BTreeMap<Var, usize> = BTreeMap::new();
            let mut found = Vec::new();
            f.axes
                .iter()
                .flatten()
                .for_each(|&v| f.space.leaves(v, &mut found));
            found
                .into_iter()
                .map(|v| {
                    let next = seen.len();
                    (*seen.entry(v).or_insert(next), f.space.size(v).clone())
                })
                .collect()
        };
        let before = leaves(self);
        for (inst, data) in graph.insts() {
            if again.opaque.iter().any(|(i, _)| *i == inst) {
                continue;
            }
            let operands: Vec<Axes> = data
                .operands
                .iter()
                .map(|v| again.axes[v.index()])
                .collect();
            let results: Vec<Axes> = data.results.iter().map(|v| again.axes[v.index()]).collect();
            let rule = again.rules[inst.index()].clone();
            if solve(&mut again.space, &rule, &operands, &results).is_err() {
                return false;
            }
        }
        leaves(&again) == before
    }
}
