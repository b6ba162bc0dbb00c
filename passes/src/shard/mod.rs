//! Builds the sharded graph from the placed graph and the chosen splits. Values on groups have shardings, collectives
//! are explicit, and sizes are still global.
//!
//! Every unreduced sum is reduced at its origin; [`rewrite`](crate::rewrite) finds the best position.

use tpc_ir::factor::Var;
use tpc_ir::op::{
    AllGather, AllReduce, AllToAll, Copy, NormApply, NormStats, OperandState, TypeError,
    unreduced_result,
};
use tpc_ir::{
    AxisTree, ClassData, ClassRef, Dim, Graph, Inst, Interval, Op, Output, Place, RANK, Sharding,
    Unreduced, Value, Verified, stage,
};

use crate::factors::{Analysis, Factors, PropagationConflict, Selection, active_roles};
use crate::plan::Choice;

/// An error in the chosen splits, caused by a bug in the planner.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ShardError {
    /// The chosen splits contradict each other.
    #[error("the chosen splits contradict each other at {0:?}")]
    Clash(PropagationConflict),
    /// An op rejects its operands.
    #[error("operands do not fit: {0}")]
    Type(#[from] TypeError),
}

/// Builds the sharded graph of a placed graph.
///
/// # Errors
/// Returns an error if the choice contradicts itself.
pub fn shard(
    graph: &Verified<stage::Placed>,
    factors: &Factors,
    analysis: &Analysis,
    choice: &Choice,
) -> Result<Graph, ShardError> {
    let mut out = graph.without_insts();
    out.devices.clone_from(&graph.devices);
    out.groups.clone_from(&graph.groups);
    out.classes = classes(graph, factors, analysis, choice);
    out.reserve(graph.values().len(), graph.insts().len());
    let mut lowering = Lowering {
        from: graph,
        factors,
        analysis,
        choice,
        out,
        map: vec![None; graph.values().len()],
    };
    for (inst, _) in graph.insts() {
        lowering.inst(inst)?;
    }
    lowering.outputs();
    Ok(lowering.out)
}

fn classes(
    graph: &Graph,
    factors: &Factors,
    analysis: &Analysis,
    choice: &Choice,
) -> Vec<ClassData> {
    choice
        .options
        .iter()
        .map(|o| {
            let size = o
                .leaves
                .iter()
                .map(|&l| factors.space.size(l).as_const().unwrap_or(1))
                .product();
            let stored = analysis.leaves[&o.leaves[0]].stored.first();
            let layer = stored.and_then(|&v| graph.inst(graph.value(v).def.0).layer);
            let name = layer.map_or_else(|| o.kind.to_owned(), |l| format!("blk.{l} {}", o.kind));
            ClassData {
                name,
                size,
                ranges: o.ranges.clone(),
            }
        })
        .collect()
}

struct Lowering<'a> {
    from: &'a Graph,
    factors: &'a Factors,
    analysis: &'a Analysis,
    choice: &'a Choice,
    out: Graph,
    map: Vec<Option<Value>>,
}

impl Lowering<'_> {
    fn sharding(&self, v: Value) -> Sharding {
        let Place::Group(group) = self.from.value(v).place else {
            return Sharding::mirrored();
        };
        let axes = &self.factors.axes[v.index()];
        let class = |factors: &[Var]| -> Option<(ClassRef, usize)> {
            let class = self.choice.class_of(group, factors[0])?;
            let o = &self.choice.options[class.index()];
            if o.leaves.len() == 1 {
                return Some((ClassRef { class, div: 1 }, 1));
            }
            let whole =
                factors.len() >= o.leaves.len() && factors[..o.leaves.len()] == o.leaves[..];
            let minor = o.leaves[1..]
                .iter()
                .map(|&l| self.factors.space.size(l).as_const().unwrap_or(1))
                .product();
            Some(if whole {
                (ClassRef { class, div: 1 }, o.leaves.len())
            } else {
                (ClassRef { class, div: minor }, 1)
            })
        };
        let mut sharding = Sharding::split(std::array::from_fn(|i| {
            self.factors.space.export(axes[i], &class)
        }));
        let data = self.from.value(v);
        if let (Some(tree), Op::Weight(_)) = (&sharding.axes[0], self.from.def_op(v)) {
            let mut classes = Vec::new();
            tree.classes(&mut classes);
            let shares = |c: &ClassRef| self.choice.options[c.class.index()].shares_blocks;
            let block = data.ty.dtype.block_len();
            if self.cuts(tree, block) {
                sharding.granule = self.analysis.granules[v.index()];
            } else if classes.iter().any(shares) {
                sharding.granule = block;
            }
        }
        sharding
    }

    /// True if a device's part of an axis begins or ends inside a block of `block` indices.
    fn cuts(&self, tree: &AxisTree, block: u64) -> bool {
        let of_class = |c: ClassRef| self.choice.options[c.class.index()].ranges.len();
        let mut classes = Vec::new();
        tree.classes(&mut classes);
        let devices = classes.first().map_or(0, |&c| of_class(c));
        (0..devices).any(|rank| {
            let held = tree.intervals(&self.out.classes, rank).unwrap_or_default();
            let cut = |r: &Interval| !r.start.is_multiple_of(block) || !r.len.is_multiple_of(block);
            held.iter().any(cut)
        })
    }

    fn set(&mut self, v: Value, name: &str, sharding: Sharding) {
        let data = self.out.value_mut(v);
        name.clone_into(&mut data.name);
        data.sharding = sharding;
    }

    fn inst(&mut self, inst: Inst) -> Result<(), ShardError> {
        let data = self.from.inst(inst);
        let layer = data.layer;
        let types = data.results.iter();
        let types = types.map(|&v| self.from.value(v).ty.clone()).collect();
        let place = self.from.value(data.results[0]).place;
        let operands: Vec<Value> = data.operands.iter().map(|v| self.new_value(*v)).collect();
        if let (Op::Copy(_), [source], [result]) =
            (&data.op, data.operands.as_slice(), data.results.as_slice())
            && self.from.value(*source).place == place
        {
            self.map[result.index()] = Some(self.redivide(operands[0], *result, layer)?);
            return Ok(());
        }
        let active =
            active_roles(self.from, self.analysis, inst, self.choice).map_err(ShardError::Clash)?;
        if let (Op::Norm(norm), true) = (&data.op, active.norm) {
            let v = data.results[0];
            let name = &self.from.value(v).name;
            let stats = self.out.push_with_inference(
                NormStats { kind: norm.kind },
                operands.clone(),
                place,
                layer,
            )?;
            self.set(stats, name, Sharding::unreduced(Unreduced::Partial));
            let sum = self
                .out
                .push_with_inference(AllReduce, vec![stats], place, layer)?;
            self.set(sum, name, Sharding::mirrored());
            let n = self.from.value(v).ty.dims[0].as_const().unwrap_or(1);
            let apply = NormApply {
                kind: norm.kind,
                eps: norm.eps,
                n,
            };
            let normed =
                self.out
                    .push_with_inference(apply, vec![operands[0], sum], place, layer)?;
            let sharding = self.sharding(v);
            self.set(normed, name, sharding);
            self.map[v.index()] = Some(normed);
            return Ok(());
        }
        let states: Vec<OperandState> = operands
            .iter()
            .map(|&v| OperandState {
                unreduced: Unreduced::None,
                split: self.out.value(v).sharding.is_split(),
            })
            .collect();
        // All sums are reduced here, and every op accepts whole and split operands.
        let rule = &self.factors.rules[inst.index()];
        let pending = unreduced_result(rule, &states, active).unwrap_or(Unreduced::None);
        let made = self
            .out
            .push(data.op.clone(), operands, types, place, layer);
        let results = self.out.inst(made).results.clone();
        for (&v, &new) in data.results.iter().zip(&results) {
            let name = &self.from.value(v).name;
            let sharding = self.sharding(v);
            if pending == Unreduced::None {
                self.set(new, name, sharding);
                self.map[v.index()] = Some(new);
                continue;
            }
            if sharding.is_split() {
                return Err(ShardError::Clash(PropagationConflict::UnreducedAndSplit(v)));
            }
            self.set(new, name, Sharding::unreduced(pending));
            let sum = self
                .out
                .push_with_inference(AllReduce, vec![new], place, layer)?;
            self.set(sum, name, Sharding::mirrored());
            self.map[v.index()] = Some(sum);
        }
        Ok(())
    }

    /// Divides a value as `result` requires, at the same place. Returns the value itself if it is divided so already.
    fn redivide(
        &mut self,
        v: Value,
        result: Value,
        layer: Option<u32>,
    ) -> Result<Value, ShardError> {
        let to = self.sharding(result);
        let data = self.out.value(v);
        let (from, ty, place) = (data.sharding.clone(), data.ty.clone(), data.place);
        if from == to {
            return Ok(v);
        }
        let join = gathered_axis(&self.out, &from);
        let cut = cut_axis(&self.out, &to, self.out.ranks(place));
        let op: Op = match (join, cut) {
            (Some(axis), _) if to == Sharding::mirrored() => AllGather { axis: axis as u64 }.into(),
            (Some(join), Some(cut)) if join != cut => AllToAll {
                cut: cut as u64,
                join: join as u64,
                counts: Vec::new(),
            }
            .into(),
            _ => Copy.into(),
        };
        let inst = self.out.push(op, vec![v], vec![ty], place, layer);
        let made = self.out.inst(inst).results[0];
        let name = &self.from.value(result).name;
        self.set(made, name, to);
        Ok(made)
    }

    fn new_value(&self, v: Value) -> Value {
        self.map[v.index()].expect("invariant: operands are defined before they are used")
    }

    fn outputs(&mut self) {
        for output in &self.from.outputs {
            let new = match output {
                Output::Named(name, v) => Output::Named(name.clone(), self.new_value(*v)),
                Output::State { state, value } => Output::State {
                    state: self.new_value(*state),
                    value: self.new_value(*value),
                },
            };
            self.out.outputs.push(new);
        }
    }
}

/// Returns the axis that an all-gather joins: the only split axis, if the devices' parts are disjoint ranges of it.
fn gathered_axis(graph: &Graph, sharding: &Sharding) -> Option<usize> {
    let split: Vec<usize> = (0..RANK).filter(|&a| sharding.axes[a].is_some()).collect();
    let [axis] = split[..] else { return None };
    match sharding.axes[axis].as_deref() {
        Some(AxisTree::Leaf { split: Some(c), .. }) => {
            (!graph.class(c.class).overlaps(c.div)).then_some(axis)
        }
        _ => None,
    }
}

/// Returns the axis that an all-to-all cuts: the only split axis, if the devices' parts are its consecutive ranges.
fn cut_axis(graph: &Graph, sharding: &Sharding, devices: usize) -> Option<usize> {
    let split: Vec<usize> = (0..RANK).filter(|&a| sharding.axes[a].is_some()).collect();
    let [axis] = split[..] else { return None };
    let tree = sharding.axes[axis].as_deref()?;
    let mut end = 0;
    for rank in 0..devices {
        match tree.intervals(&graph.classes, rank)?[..] {
            [] => {}
            [run] if run.start == end => end = run.end(),
            _ => return None,
        }
    }
    (tree.size()? == end).then_some(axis)
}

/// Returns the sizes, for reports; `None` unless all are constant.
pub fn const_dims(dims: &[Dim; RANK]) -> Option<[u64; RANK]> {
    let mut out = [1; RANK];
    for (o, d) in out.iter_mut().zip(dims) {
        *o = d.as_const()?;
    }
    Some(out)
}
