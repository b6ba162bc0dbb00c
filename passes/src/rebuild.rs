//! Builds a placed graph anew, with changed instructions and with copies that end factors.

use tpc_ir::op::Copy;
use tpc_ir::{Graph, Inst, InstData, Op, Output, Value};

use crate::factors::ExactOps;
use crate::place::PlacedGraph;

/// A new graph and the new value of each old one.
pub(crate) struct Rebuild<'a> {
    pub(crate) from: &'a Graph,
    pub(crate) out: Graph,
    /// The new values; `None` for values that are not built yet, or never.
    map: Vec<Option<Value>>,
    /// The copies that end factors, and the ops that read summed axes whole.
    pub(crate) exact: ExactOps,
}

impl<'a> Rebuild<'a> {
    /// Begins with the symbols, devices and groups of `from`, and no instructions.
    pub(crate) fn of(from: &'a Graph) -> Self {
        let mut out = from.without_insts();
        out.devices.clone_from(&from.devices);
        out.groups.clone_from(&from.groups);
        out.reserve(from.values().len(), from.insts().len());
        Rebuild {
            from,
            out,
            map: vec![None; from.values().len()],
            exact: ExactOps::default(),
        }
    }

    /// Returns the new value of `v`.
    pub(crate) fn value(&self, v: Value) -> Value {
        self.map[v.index()].expect("invariant: operands are kept and defined before they are used")
    }

    /// Uses `new` wherever the old graph uses `v`.
    pub(crate) fn replace(&mut self, v: Value, new: Value) {
        self.map[v.index()] = Some(new);
    }

    /// Returns the new operands of an instruction.
    pub(crate) fn operands(&self, data: &InstData) -> Vec<Value> {
        data.operands.iter().map(|&v| self.value(v)).collect()
    }

    /// Adds `op` in place of `data`, with its types, place, layer and names.
    pub(crate) fn push(&mut self, data: &InstData, op: Op, operands: Vec<Value>) -> Inst {
        let types = data.results.iter();
        let types = types.map(|&v| self.from.value(v).ty.clone()).collect();
        let place = self.from.value(data.results[0]).place;
        let inst = self.out.push(op, operands, types, place, data.layer);
        let made = self.out.inst(inst).results.clone();
        for (&v, &new) in data.results.iter().zip(&made) {
            let name = &self.from.value(v).name;
            self.out.value_mut(new).name.clone_from(name);
            self.replace(v, new);
        }
        inst
    }

    /// Adds a copy of a new value at its place. The factors of `axes` end at the copy.
    pub(crate) fn boundary(&mut self, v: Value, axes: Vec<usize>, layer: Option<u32>) -> Value {
        let data = self.out.value(v);
        let (ty, place, name) = (data.ty.clone(), data.place, data.name.clone());
        let inst = self.out.push(Copy, vec![v], vec![ty], place, layer);
        self.exact.boundaries.insert(inst, axes);
        let made = self.out.inst(inst).results[0];
        self.out.value_mut(made).name = name;
        made
    }

    /// Returns the new graph with the old outputs, and the instructions to treat exactly. A mirrored value that is not
    /// kept is left out.
    pub(crate) fn finish(mut self, mirrored: &[Value]) -> (PlacedGraph, ExactOps) {
        self.out.outputs = (self.from.outputs.iter())
            .map(|output| match output {
                Output::Named(name, v) => Output::Named(name.clone(), self.value(*v)),
                Output::State { state, value } => Output::State {
                    state: self.value(*state),
                    value: self.value(*value),
                },
            })
            .collect();
        let mirrored = mirrored.iter().filter_map(|v| self.map[v.index()]);
        let placed = PlacedGraph {
            mirrored: mirrored.collect(),
            graph: self.out,
        };
        (placed, self.exact)
    }
}
