//! Isolates ops whose sums must not be split: their operands are gathered, and their weights are split by rows.
//!
//! An op of [`ExactOps`] reads each summed axis whole. Copies within its group separate the factors of the axis from
//! the rest of the graph, so the planner can still split the axis before and after the op. Gathered elements are exact,
//! and one device computes each sum, so the results have the bits of one device.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;
use tpc_ir::op::{Copy, Expr, Role, Slot};
use tpc_ir::{Graph, Group, Inst, InstData, Op, Output, Value};

use crate::factors::ExactOps;
use crate::place::{PlacedGraph, group_of};

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
    let mut out = from.without_insts();
    out.devices.clone_from(&from.devices);
    out.groups.clone_from(&from.groups);
    out.reserve(from.values().len(), from.insts().len());
    let mut builder = Builder {
        from,
        out,
        map: vec![None; from.values().len()],
        known: BTreeMap::new(),
        exact: ExactOps::default(),
        origins: Vec::with_capacity(from.insts().len()),
    };
    for (inst, data) in from.insts() {
        builder.inst(inst, data, whole.contains(&inst), crosses);
    }
    builder.out.outputs = (from.outputs.iter())
        .map(|output| match output {
            Output::Named(name, v) => Output::Named(name.clone(), builder.new_value(*v)),
            Output::State { state, value } => Output::State {
                state: builder.new_value(*state),
                value: builder.new_value(*value),
            },
        })
        .collect();
    let mirrored = placed.mirrored.iter().map(|&v| builder.new_value(v));
    Isolated {
        placed: PlacedGraph {
            mirrored: mirrored.collect(),
            graph: builder.out,
        },
        exact: builder.exact,
        origins: builder.origins,
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
    from: &'a Graph,
    out: Graph,
    map: Vec<Option<Value>>,
    /// The copy of a new value, with a boundary on this axis.
    known: BTreeMap<(Value, usize), Value>,
    exact: ExactOps,
    origins: Vec<Option<Inst>>,
}

impl Builder<'_> {
    fn new_value(&self, v: Value) -> Value {
        self.map[v.index()].expect("invariant: operands are defined before they are used")
    }

    fn inst(&mut self, inst: Inst, data: &InstData, whole: bool, crosses: &dyn Fn(Value) -> bool) {
        let mut operands: Vec<Value> = data.operands.iter().map(|&v| self.new_value(v)).collect();
        let summed = if whole { self.summed(data) } else { Vec::new() };
        for (slot, axis) in summed {
            if !self.from.def_op(data.operands[slot]).is_stored() {
                operands[slot] = self.boundary(operands[slot], axis, data.layer);
            }
        }
        let types = data.results.iter();
        let types = types.map(|&v| self.from.value(v).ty.clone()).collect();
        let place = self.from.value(data.results[0]).place;
        let made = (self.out).push(data.op.clone(), operands, types, place, data.layer);
        self.origins.push(Some(inst));
        if whole {
            self.exact.whole.insert(made);
        }
        let made = self.out.inst(made).results.clone();
        for (&v, &new) in data.results.iter().zip(&made) {
            self.out
                .value_mut(new)
                .name
                .clone_from(&self.from.value(v).name);
            let ends = match &data.op {
                Op::Norm(_) => true,
                op => op.is_product() && crosses(v),
            };
            let new = match whole && ends {
                true => self.boundary(new, 0, data.layer),
                false => new,
            };
            self.map[v.index()] = Some(new);
        }
    }

    /// Returns the operands and axes that an instruction sums over.
    fn summed(&self, data: &InstData) -> Vec<(usize, usize)> {
        if data.op.is_product() {
            return vec![(0, 0), (1, 0)];
        }
        let types =
            |vs: &[Value]| -> Vec<_> { vs.iter().map(|&v| &self.from.value(v).ty).collect() };
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
        let data = self.out.value(v);
        let (ty, place, name) = (data.ty.clone(), data.place, data.name.clone());
        let made = self.out.push(Copy, vec![v], vec![ty], place, layer);
        self.exact.boundaries.insert(made, vec![axis]);
        self.origins.push(None);
        let made = self.out.inst(made).results[0];
        self.out.value_mut(made).name = name;
        self.known.insert((v, axis), made);
        made
    }
}
