//! Tables computed from the inferred factors, for planning.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tpc_ir::budget::Limits;
use tpc_ir::factor::{Axes, Space, Var};
use tpc_ir::op::{Role, Rule};
use tpc_ir::program::Target;
use tpc_ir::{
    Budget, BudgetExceeded, Dim, Graph, Inst, Op, OpLocation, Place, RANK, Resource, Value,
};

use super::Factors;
use crate::place::group_of;
use crate::users::Users;

/// The name of this step in budget errors.
const TABLES: &str = "planning";

/// A placed graph and its analyses.
#[derive(Clone, Copy, Debug)]
pub struct GraphFacts<'a> {
    /// The graph.
    pub graph: &'a Graph,
    /// The graph's factors.
    pub factors: &'a Factors,
    /// Tables over the factors.
    pub analysis: &'a Analysis,
    /// The readers of the graph's values.
    pub users: &'a Users,
}

/// One concatenated segment of a tensor: the leaves of each axis. Tensors that are not concatenated have one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summand {
    /// Leaves of each axis, major first.
    pub axes: [Vec<Var>; RANK],
}

impl Summand {
    /// Returns the leaves of all axes.
    pub fn leaves(&self) -> impl Iterator<Item = Var> + '_ {
        self.axes.iter().flatten().copied()
    }
}

/// A role of an op, with the leaves of its factor.
#[derive(Clone, Debug)]
pub struct RoleUse {
    /// The role.
    pub role: Role,
    /// The leaves of each summand, major first.
    pub summands: Vec<Vec<Var>>,
}

/// The roles of one instruction's factors.
#[derive(Clone, Debug, Default)]
pub struct InstFacts {
    /// The roles with their leaves.
    pub roles: Vec<RoleUse>,
}

/// Facts about a leaf.
#[derive(Clone, Debug, Default)]
pub struct LeafFacts {
    /// Instructions that need the leaf whole.
    pub whole: Vec<Inst>,
    /// A value with the leaf twice in one summand.
    pub repeated: Option<Value>,
    /// An instruction that indexes along an axis that the leaf only partly covers.
    pub indexed_part: Option<Inst>,
    /// The leaves just before this leaf on some axis; `None` if the leaf is first on an axis.
    pub before: BTreeSet<Option<Var>>,
    /// Other leaves in summands with this leaf.
    pub co_occurring: BTreeSet<Var>,
    /// The states, and the weights on groups, with this leaf, in program order.
    pub stored: Vec<Value>,
    /// True for the parts of a cache that is divided by cells.
    pub owned: bool,
    /// A value of a group that an override keeps whole.
    pub pinned_whole: Option<Value>,
}

/// Tables over values, instructions and leaves.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The summands of each value; values with equal factors share them.
    pub summands: Vec<Arc<[Summand]>>,
    /// The roles of each instruction.
    pub insts: Vec<InstFacts>,
    /// The facts of each leaf.
    pub leaves: BTreeMap<Var, LeafFacts>,
    /// The granule of each value along axis 0, in elements: the smallest number of elements stored together. The
    /// default is a block of the file's type; see [`Self::store_as`].
    pub granules: Vec<u64>,
}

impl Analysis {
    /// Returns the tables of a placed graph. Only instructions on device groups restrict splits.
    pub fn new(graph: &Graph, factors: &Factors) -> Analysis {
        let found = Analysis::new_within(graph, factors, &Budget::new(Limits::NONE));
        found.expect("invariant: the budget is unlimited")
    }

    /// Builds the tables of [`Self::new`] within a budget.
    ///
    /// # Errors
    /// Returns the instruction that exhausts the budget.
    pub fn new_within(
        graph: &Graph,
        factors: &Factors,
        budget: &Budget,
    ) -> Result<Analysis, BudgetExceeded> {
        let mut out = Analysis {
            summands: Vec::with_capacity(graph.values().len()),
            insts: Vec::with_capacity(graph.insts().len()),
            leaves: BTreeMap::new(),
            granules: Vec::with_capacity(graph.values().len()),
        };
        // The summands per set of axes; true if their leaves' facts are recorded.
        let mut known: HashMap<Axes, (Arc<[Summand]>, bool)> = HashMap::new();
        for (value, data) in graph.values() {
            out.granules.push(data.ty.dtype.block_len());
            let axes = factors.axes[value.index()].map(|v| factors.space.find(v));
            let spot = || Some(OpLocation::of(graph, graph.value(value).def.0));
            let of_axes = match known.entry(axes) {
                Entry::Occupied(known) => {
                    let count = known.get().0.len() as u64;
                    budget.spend(Resource::Terms, count, TABLES, spot)?;
                    known.into_mut()
                }
                Entry::Vacant(new) => {
                    let count = axes.map(|a| factors.space.summand_count(a));
                    let count = count.into_iter().fold(1, u64::saturating_mul);
                    budget.spend(Resource::Terms, count, TABLES, spot)?;
                    new.insert((summands(&factors.space, &axes).into(), false))
                }
            };
            out.value(graph, value, of_axes);
            out.summands.push(Arc::clone(&of_axes.0));
        }
        for (inst, _) in graph.insts() {
            let facts = out.inst(graph, factors, inst);
            let count = facts.roles.iter().map(|r| r.summands.len() as u64).sum();
            let spot = || Some(OpLocation::of(graph, inst));
            budget.spend(Resource::Terms, count, TABLES, spot)?;
            out.insts.push(facts);
        }
        for (inst, _) in &factors.opaque {
            if group_of(graph, *inst).is_some() {
                let count = out.opaque(graph, *inst);
                let spot = || Some(OpLocation::of(graph, *inst));
                budget.spend(Resource::Terms, count, TABLES, spot)?;
            }
        }
        Ok(out)
    }

    /// Records a value's summands in the facts of their leaves, once per set of axes.
    fn value(
        &mut self,
        graph: &Graph,
        value: Value,
        (summands, entered): &mut (Arc<[Summand]>, bool),
    ) {
        let on_group = matches!(graph.value(value).place, Place::Group(_));
        // A state on the host is cut into the devices' parts at every fetch.
        let stored = match graph.def_op(value) {
            Op::Weight(_) => on_group,
            Op::State(_) => true,
            _ => false,
        };
        if stored {
            for leaf in summands.iter().flat_map(Summand::leaves) {
                let facts = self.leaves.entry(leaf).or_default();
                if facts.stored.last() != Some(&value) {
                    facts.stored.push(value);
                }
            }
        }
        if !stored && !on_group || std::mem::replace(entered, true) {
            return;
        }
        for summand in summands.iter() {
            let in_term: Vec<Var> = summand.leaves().collect();
            for axis in &summand.axes {
                for (i, &leaf) in axis.iter().enumerate() {
                    let facts = self.leaves.entry(leaf).or_default();
                    facts.before.insert(i.checked_sub(1).map(|j| axis[j]));
                    let others = in_term.iter().filter(|&&l| l != leaf);
                    facts.co_occurring.extend(others);
                    if in_term.iter().filter(|&&l| l == leaf).count() > 1 {
                        facts.repeated = Some(value);
                    }
                }
            }
        }
    }

    fn inst(&mut self, graph: &Graph, factors: &Factors, inst: Inst) -> InstFacts {
        let data = graph.inst(inst);
        let axes =
            |vs: &[Value]| -> Vec<Axes> { vs.iter().map(|v| factors.axes[v.index()]).collect() };
        let (operands, results) = (axes(&data.operands), axes(&data.results));
        let on_group = group_of(graph, inst).is_some();
        let integer = |v: &Value| graph.value(*v).ty.dtype.is_integer();
        let integers = data.results.iter().any(integer);
        let mut out = InstFacts::default();
        for (role, expr) in &factors.rules[inst.index()].roles {
            let Some(var) = Rule::role_var(expr, &operands, &results) else {
                continue;
            };
            let summands = factors.space.summands(var);
            for summand in &summands {
                for (position, leaf) in summand.iter().enumerate() {
                    let facts = self.leaves.entry(*leaf).or_default();
                    match role {
                        _ if !on_group => {}
                        Role::Whole => facts.whole.push(inst),
                        Role::Gather if position > 0 || summands.len() > 1 => {
                            facts.indexed_part = Some(inst);
                        }
                        // A masked row is recognised only by its class, so the class must split all experts.
                        Role::Expert if summand.len() > 1 || summands.len() > 1 => {
                            facts.indexed_part = Some(inst);
                        }
                        // Unreduced sums of integers are not supported.
                        Role::Reduce | Role::Gather | Role::Expert if integers => {
                            facts.whole.push(inst);
                        }
                        // Rounds of blocks and cells of a block stay together.
                        Role::Owned if position + 2 != summand.len() || summand.len() > 3 => {
                            facts.whole.push(inst);
                        }
                        Role::Owned => facts.owned = true,
                        Role::Reduce | Role::Norm | Role::Gather | Role::Expert => {}
                    }
                }
            }
            out.roles.push(RoleUse {
                role: *role,
                summands,
            });
        }
        out
    }

    fn opaque(&mut self, graph: &Graph, inst: Inst) -> u64 {
        let data = graph.inst(inst);
        let values = data.operands.iter().chain(&data.results);
        let leaves: BTreeSet<Var> = values
            .collect::<BTreeSet<_>>()
            .into_iter()
            .flat_map(|v| self.summands[v.index()].iter().flat_map(Summand::leaves))
            .collect();
        for &leaf in &leaves {
            self.leaves.entry(leaf).or_default().whole.push(inst);
        }
        leaves.len() as u64
    }

    /// Keeps the given values whole.
    pub fn keep_whole(&mut self, values: &[Value]) {
        for &v in values {
            for leaf in self.summands[v.index()].iter().flat_map(Summand::leaves) {
                self.leaves.entry(leaf).or_default().pinned_whole = Some(v);
            }
        }
    }

    /// Applies the target's storage: weights that only products read may be cut at the target's granules.
    pub fn store_as(&mut self, target: &dyn Target, graph: &Graph, users: &Users) {
        for (value, data) in graph.values() {
            let multiplied = |&inst: &Inst| {
                let reader = graph.inst(inst);
                let others = reader.operands.get(1..).unwrap_or_default();
                reader.op.is_product() && !others.contains(&value)
            };
            let readers = users.of(value);
            if matches!(graph.def_op(value), Op::Weight(_))
                && !readers.is_empty()
                && readers.iter().all(multiplied)
                && !users.is_output(value)
            {
                self.granules[value.index()] = target.granule(data.place, data.ty.dtype);
            }
        }
    }

    /// Returns the product of the leaves' sizes.
    pub fn product(factors: &Factors, leaves: &[Var]) -> Dim {
        Dim::product(leaves.iter().map(|&v| factors.space.size(v))).unwrap_or(Dim::ZERO)
    }
}

fn summands(space: &Space, axes: &Axes) -> Vec<Summand> {
    let mut out = vec![Summand {
        axes: Default::default(),
    }];
    for (axis, &var) in axes.iter().enumerate() {
        let alternatives = space.summands(var);
        if let [one] = alternatives.as_slice() {
            out.iter_mut().for_each(|t| t.axes[axis].clone_from(one));
            continue;
        }
        let with = |t: &Summand, alternative: &Vec<Var>| {
            let mut t = t.clone();
            t.axes[axis].clone_from(alternative);
            t
        };
        out = out
            .iter()
            .flat_map(|t| alternatives.iter().map(|a| with(t, a)))
            .collect();
    }
    out
}
