//! Isolates ops whose sums must not be split: their operands are gathered, and their weights are split by rows.
//!
//! An op of [`ExactOps`] reads each summed axis whole. Copies within its group separate the factors of the axis from
//! the rest of the graph, so the planner can still split the axis before and after the op. Gathered elements are exact,
//! and one device computes each sum, so the results have the bits of one device.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use tpc_ir::op::{Expr, Role, Slot};
use tpc_ir::{Graph, Group, Inst, InstData, Op, Value};

use crate::factors::ExactOps;
use crate::place::{PlacedGraph, group_of};
use crate::rebuild::Rebuild;

/// A placed graph with isolated ops.
pub(super) struct Isolated {
    pub(super) placed: PlacedGraph,
    pub(super) exact: ExactOps,
    /// The original of each instruction; `None` for an inserted copy.
    pub(super) origins: Vec<Option<Inst>>,
}

/// Isolates these instructions of a placed graph. `crosses` returns true if several layers share a factor of the
/// value's axis 0.
pub(super) fn isolate(
    placed: &PlacedGraph,
    whole: &BTreeSet<Inst>,
    crosses: &dyn Fn(Value) -> bool,
) -> Isolated {
    let from = &placed.graph;
    let mut builder = Builder {
        new: Rebuild::of(from),
        known: BTreeMap::new(),
        origins: Vec::with_capacity(from.insts().len()),
    };
    for (inst, data) in from.insts() {
        builder.inst(inst, data, whole.contains(&inst), crosses);
    }
    let origins = builder.origins;
    let (placed, exact) = builder.new.finish(&placed.mirrored);
    Isolated {
        placed,
        exact,
        origins,
    }
}

/// Returns the instructions of a graph that are alike to one of `found` except for the layer: layers are alike if they
/// have the same ops with the same types of results, in the same order.
pub(super) fn alike_in_layers(graph: &Graph, found: &BTreeSet<Inst>) -> BTreeSet<Inst> {
    let mut layers: BTreeMap<(Group, u32), Vec<Inst>> = BTreeMap::new();
    for (inst, data) in graph.insts() {
        if let (Some(group), Some(layer)) = (group_of(graph, inst), data.layer) {
            layers.entry((group, layer)).or_default().push(inst);
        }
    }
    let shape = |inst: &Inst| {
        let data = graph.inst(*inst);
        let ty = data.results.first().map(|&v| &graph.value(v).ty);
        (data.op.name(), ty)
    };
    let mut alike: FxHashMap<Vec<_>, Vec<&[Inst]>> = FxHashMap::default();
    for insts in layers.values() {
        let shapes = insts.iter().map(shape).collect();
        alike.entry(shapes).or_default().push(insts);
    }
    let mut out = found.clone();
    for layers in alike.values() {
        let len = layers.first().map_or(0, |l| l.len());
        for at in (0..len).filter(|&at| layers.iter().any(|l| found.contains(&l[at]))) {
            out.extend(layers.iter().map(|l| l[at]));
        }
    }
    out
}

struct Builder<'a> {
    new: Rebuild<'a>,
    /// The copy of a new value, with a boundary on this axis.
    known: BTreeMap<(Value, usize), Value>,
    origins: Vec<Option<Inst>>,
}

impl Builder<'_> {
    fn inst(&mut self, inst: Inst, data: &InstData, whole: bool, crosses: &dyn Fn(Value) -> bool) {
        let mut operands = self.new.operands(data);
        let summed = if whole { self.summed(data) } else { Vec::new() };
        for (slot, axis) in summed {
            if !self.new.from.def_op(data.operands[slot]).is_stored() {
                operands[slot] = self.boundary(operands[slot], axis, data.layer);
            }
        }
        let made = self.new.push(data, data.op.clone(), operands);
        self.origins.push(Some(inst));
        if !whole {
            return;
        }
        self.new.exact.whole.insert(made);
        for &v in &data.results {
            let ends = match &data.op {
                Op::Norm(_) => true,
                op => op.is_product() && crosses(v),
            };
            if ends {
                let new = self.boundary(self.new.value(v), 0, data.layer);
                self.new.replace(v, new);
            }
        }
    }

    /// Returns the operands and axes that an instruction sums over.
    fn summed(&self, data: &InstData) -> Vec<(usize, usize)> {
        if data.op.is_product() {
            return vec![(0, 0), (1, 0)];
        }
        let types =
            |vs: &[Value]| -> Vec<_> { vs.iter().map(|&v| &self.new.from.value(v).ty).collect() };
        let rule = data.op.rule(&types(&data.operands), &types(&data.results));
        let summed = rule
            .roles
            .iter()
            .filter_map(|(role, expr)| match (role, expr) {
                (Role::Reduce | Role::Norm, Expr::Axis(Slot::Operand(i), axis)) => {
                    Some((*i, *axis))
                }
                _ => None,
            });
        summed.collect()
    }

    /// Returns a copy of `v` at its place. The factors of `axis` end at the copy.
    fn boundary(&mut self, v: Value, axis: usize, layer: Option<u32>) -> Value {
        if let Some(&known) = self.known.get(&(v, axis)) {
            return known;
        }
        let made = self.new.boundary(v, vec![axis], layer);
        self.origins.push(None);
        self.known.insert((v, axis), made);
        made
    }
}
