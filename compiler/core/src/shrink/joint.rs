use std::collections::HashMap;

use tpc_ir::factor::{Space, UnifyError, Var};
use tpc_ir::op::{Expr, Role, Slot, axis_index};
use tpc_ir::{AxisTree, ClassRef, Graph, Inst, InstData, Op, Output, RANK, Value};
use tpc_passes::factors::Factors;

/// A leaf of a sharding's tree: its factor, and the class that splits it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TreeLeaf {
    pub(super) var: Var,
    pub(super) class: Option<ClassRef>,
}

/// Both graphs in one, with factors. They share weights, states and inputs.
pub(super) struct Joint {
    /// The model's instructions with unchanged numbers, then the sharded graph's instructions without leaves.
    pub(super) graph: Graph,
    pub(super) factors: Factors,
    /// Maps each value of the sharded graph to a joint value.
    pub(super) sharded: Vec<Value>,
    /// Tree leaves per value and axis of the sharded graph, in order.
    pub(super) trees: Vec<[Vec<TreeLeaf>; RANK]>,
    /// Instructions whose equations do not hold. Their factors keep their sizes.
    pub(super) opaque: Vec<Inst>,
    /// Factors of indices and counted axes that could not be unified. They keep their sizes.
    pub(super) unmatched: Vec<Var>,
    /// Factors whose indices count a product of factors, each with the product.
    pub(super) counted: Vec<(Var, Var)>,
}

impl Joint {
    pub(super) fn new(model: &Graph, sharded: &Graph) -> Joint {
        let JointGraph {
            graph,
            map,
            transfers,
        } = JointGraph::new(model, sharded);
        let factors = Factors::infer(&graph);
        let mut out = Joint {
            opaque: factors.opaque.iter().map(|(inst, _)| *inst).collect(),
            graph,
            factors,
            sharded: map,
            trees: Vec::new(),
            unmatched: Vec::new(),
            counted: Vec::new(),
        };
        out.unify_transfers(&transfers);
        out.unify_opaque();
        out.unify_indices();
        out.import_trees(sharded);
        let space = &mut out.factors.space;
        space.compress();
        for (whole, _) in &mut out.counted {
            *whole = space.find(*whole);
        }
        out
    }

    /// Unifies the factors of transfers' operands and results, because transfers keep the size over all devices.
    fn unify_transfers(&mut self, transfers: &[(Value, Value)]) {
        let Joint { graph, factors, .. } = self;
        for &(a, b) in transfers {
            for axis in 0..RANK {
                let (x, y) = (factors.axes[a.index()][axis], factors.axes[b.index()][axis]);
                if factors.space.unify(&[x], &[y]).is_err() {
                    self.opaque.push(graph.value(b).def.0);
                }
            }
        }
    }

    /// Unifies the equal axes of each op's operand and result, if the op relates no sizes. Other axes keep their sizes.
    /// Equal ops, of which the sharded graph has one, then keep equal sizes.
    fn unify_opaque(&mut self) {
        let Joint { graph, factors, .. } = self;
        for (inst, data) in graph.insts() {
            let (Op::Opaque(_), Some(&from)) = (&data.op, data.operands.first()) else {
                continue;
            };
            for &to in &data.results {
                for axis in 0..RANK {
                    let size = |v: Value| &graph.value(v).ty.dims[axis];
                    let (x, y) = (
                        factors.axes[from.index()][axis],
                        factors.axes[to.index()][axis],
                    );
                    let is_unified =
                        size(from) == size(to) && factors.space.unify(&[x], &[y]).is_ok();
                    if !is_unified {
                        self.opaque.push(inst);
                    }
                }
            }
        }
    }

    /// Unifies the axis that an index selects along with the axis that the index counts. Adds products of factors to
    /// `counted`.
    fn unify_indices(&mut self) {
        for (a, b) in indexed_axes(&self.graph, &self.factors) {
            let space = &mut self.factors.space;
            let (x, y) = (space.factors(&[a]), space.factors(&[b]));
            let same = space.size(a) == space.size(b);
            match (x.as_slice(), y.as_slice()) {
                _ if !same => self.unmatched.extend([a, b]),
                _ if x == y => {}
                ([one], [_, _, ..]) if space.segments(*one).is_none() => {
                    self.counted.push((*one, b));
                }
                ([_, _, ..], [one]) if space.segments(*one).is_none() => {
                    self.counted.push((*one, a));
                }
                _ => {
                    if space.unify(&[a], &[b]).is_err() {
                        self.unmatched.extend([a, b]);
                    }
                }
            }
        }
    }

    fn import_trees(&mut self, sharded: &Graph) {
        for (v, data) in sharded.values() {
            let at = self.sharded[v.index()];
            let mut found: [Vec<TreeLeaf>; RANK] = Default::default();
            for (axis, tree) in data.sharding.axes.iter().enumerate() {
                let Some(tree) = tree else { continue };
                let var = self.factors.axes[at.index()][axis];
                if import(&mut self.factors.space, var, tree, &mut found[axis]).is_err() {
                    self.opaque.push(self.graph.value(at).def.0);
                }
            }
            self.trees.push(found);
        }
    }
}

struct JointGraph {
    graph: Graph,
    map: Vec<Value>,
    transfers: Vec<(Value, Value)>,
}

impl JointGraph {
    fn new(model: &Graph, sharded: &Graph) -> JointGraph {
        let mut graph = model.clone();
        let mut leaves: HashMap<&Op, Value> = HashMap::new();
        for (_, data) in model.insts().filter(|(_, d)| is_named(&d.op)) {
            leaves.insert(&data.op, data.results[0]);
        }
        let mut map: Vec<Value> = Vec::with_capacity(sharded.values().len());
        let mut transfers: Vec<(Value, Value)> = Vec::new();
        for (_, data) in sharded.insts() {
            let known = is_named(&data.op).then(|| leaves.get(&data.op));
            if let Some(&v) = known.flatten() {
                map.push(v);
                continue;
            }
            let operands: Vec<Value> = data.operands.iter().map(|v| map[v.index()]).collect();
            let types = data.results.iter().map(|&v| sharded.value(v).ty.clone());
            let place = sharded.value(data.results[0]).place;
            let inst = graph.push(
                data.op.clone(),
                operands.clone(),
                types.collect(),
                place,
                data.layer,
            );
            let results = graph.inst(inst).results.clone();
            if data.op.is_transfer() {
                transfers.extend(operands.into_iter().zip(results.iter().copied()));
            }
            map.extend(results);
        }
        let at = |v: Value| map[v.index()];
        let output = |o: &Output| match o {
            Output::Named(name, v) => Output::Named(name.clone(), at(*v)),
            Output::State { state, value } => Output::State {
                state: at(*state),
                value: at(*value),
            },
        };
        graph.outputs.extend(sharded.outputs.iter().map(output));
        JointGraph {
            graph,
            map,
            transfers,
        }
    }
}

/// Lists the axes along which an index selects, each with the axis that the index counts. `TopK` and `ArgSort` count
/// the axis that they sort.
fn indexed_axes(graph: &Graph, factors: &Factors) -> Vec<(Var, Var)> {
    let var = |v: Value, axis: usize| factors.axes[v.index()][axis];
    let mut counts: HashMap<Value, Var> = HashMap::new();
    let mut out = Vec::new();
    for (_, data) in graph.insts() {
        let o = &data.operands;
        let along = match &data.op {
            Op::TopK(_) | Op::ArgSort(_) => {
                counts.insert(data.results[0], var(o[0], 0));
                continue;
            }
            Op::SetRows(s) => Some((o[2], var(o[0], axis_index(s.axis).unwrap_or(0)))),
            _ => looked_up(graph, data).map(|(index, table, axis)| (index, var(table, axis))),
        };
        if let Some((index, axis)) = along
            && let Some(&counted) = counts.get(&index)
        {
            out.push((axis, counted));
        }
        // An integer result counts the same axis as its operand.
        let known = o.iter().find_map(|v| counts.get(v)).copied();
        if let Some(counted) = known {
            let integers = data
                .results
                .iter()
                .filter(|v| graph.value(**v).ty.dtype.is_integer());
            counts.extend(integers.map(|&v| (v, counted)));
        }
    }
    out
}

/// Returns a lookup's index operand, and the operand and axis that the lookup selects from.
fn looked_up(graph: &Graph, data: &InstData) -> Option<(Value, Value, usize)> {
    let ty = |v: &Value| &graph.value(*v).ty;
    let types = |vs: &[Value]| -> Vec<_> { vs.iter().map(ty).collect() };
    let mut operands = data.operands.iter();
    let index = *operands.rfind(|v| ty(v).dtype.is_integer())?;
    let rule = data.op.rule(&types(&data.operands), &types(&data.results));
    rule.roles
        .iter()
        .find_map(|(role, expr)| match (role, expr) {
            (Role::Gather | Role::Expert, Expr::Axis(Slot::Operand(o), axis)) => {
                Some((index, data.operands[*o], *axis))
            }
            _ => None,
        })
}

/// True if a leaf's name identifies the leaf in the other graph.
fn is_named(op: &Op) -> bool {
    op.is_leaf() && !op.is_constant()
}

fn import(
    space: &mut Space,
    axis: Var,
    tree: &AxisTree,
    leaves: &mut Vec<TreeLeaf>,
) -> Result<(), UnifyError> {
    let var = vars(space, tree, leaves);
    space.unify(&[axis], &[var])
}

fn vars(space: &mut Space, tree: &AxisTree, leaves: &mut Vec<TreeLeaf>) -> Var {
    match tree {
        AxisTree::Leaf { size, split } => {
            let var = space.leaf(size.clone());
            leaves.push(TreeLeaf { var, class: *split });
            var
        }
        AxisTree::Product(k) => {
            let parts = k.iter().map(|t| vars(space, t, leaves)).collect();
            space.product(parts)
        }
        AxisTree::Sum(k) => {
            let parts = k.iter().map(|t| vars(space, t, leaves)).collect();
            space.sum(parts)
        }
    }
}
