//! The engine's evaluation order of a graph: depth first from each layer's cache writes, then from the result.

use tpc_ir::{Graph, Inst, Op, Output, Value};

pub(super) struct Order<'a> {
    graph: &'a Graph,
    is_done: Vec<bool>,
    order: Vec<Inst>,
}

/// Orders the instructions that the results `wanted` and their layers' states need. Omits `others`, which another graph
/// computes.
pub(super) fn order(graph: &Graph, wanted: &[Value], others: &[Inst]) -> Vec<Inst> {
    let mut needed = needed_insts(graph, wanted);
    for other in others {
        if !graph.inst(*other).op.is_leaf() {
            needed[other.index()] = false;
        }
    }
    let mut out = Order {
        graph,
        is_done: needed.iter().map(|n| !n).collect(),
        order: Vec::with_capacity(needed.len()),
    };
    for (inst, data) in graph.insts() {
        if !needed[inst.index()] {
            continue;
        }
        match &data.op {
            Op::GetRows(_) if out.is_weight(data.operands[0]) => out.visit(inst),
            Op::FlashAttn(_) => out.attention(inst),
            Op::SetRows(_) | Op::SetSlice(_) if !out.is_cache(data.operands[0]) => out.visit(inst),
            // Expert weights precede expert outputs.
            Op::Binary(_) if out.weighs_experts(inst) => {
                out.value(data.operands[1]);
                out.visit(inst);
            }
            _ => {}
        }
    }
    for &v in wanted {
        out.value(v);
    }
    out.order
}

/// Marks the instructions that the results or their layers' states need.
fn needed_insts(graph: &Graph, wanted: &[Value]) -> Vec<bool> {
    let mut out = vec![false; graph.insts().len()];
    let mut layers = Vec::new();
    let walk = |from: Value, out: &mut Vec<bool>, layers: Option<&mut Vec<u32>>| {
        let mut open = vec![from];
        let mut found = Vec::new();
        while let Some(v) = open.pop() {
            let inst = graph.value(v).def.0;
            if std::mem::replace(&mut out[inst.index()], true) {
                continue;
            }
            let data = graph.inst(inst);
            if !data.op.is_leaf() {
                found.extend(data.layer);
            }
            open.extend(&data.operands);
        }
        if let Some(layers) = layers {
            layers.extend(found);
        }
    };
    for &v in wanted {
        walk(v, &mut out, Some(&mut layers));
    }
    layers.sort_unstable();
    layers.dedup();
    for output in &graph.outputs {
        if let Output::State { value, .. } = output {
            let layer = graph.inst(graph.value(*value).def.0).layer;
            if layer.is_some_and(|l| layers.binary_search(&l).is_ok()) {
                walk(*value, &mut out, None);
            }
        }
    }
    out
}

impl Order<'_> {
    fn def(&self, v: Value) -> Inst {
        self.graph.value(v).def.0
    }

    fn is_weight(&self, v: Value) -> bool {
        matches!(self.graph.def_op(v), Op::Weight(_))
    }

    fn is_cache(&self, v: Value) -> bool {
        self.graph.value(v).ty.counts_cells()
    }

    fn weighs_experts(&self, inst: Inst) -> bool {
        let [a, b] = self.graph.inst(inst).operands[..] else {
            return false;
        };
        let selected = matches!(self.graph.def_op(a), Op::MulMatId(_) | Op::AddId(_));
        selected && self.graph.value(b).ty.dims[0].is_one()
    }

    /// Visits queries, values and keys, then the cache writes, then attention.
    fn attention(&mut self, inst: Inst) {
        let operands = &self.graph.inst(inst).operands;
        let [q, k, v] = [0, 1, 2].map(|i| operands[i]);
        self.value(q);
        let stored = [v, k].map(|x| self.storing_op(x));
        for store in stored.into_iter().flatten() {
            let new = self.graph.inst(store).operands[1];
            self.value(new);
        }
        for store in stored.into_iter().rev().flatten() {
            self.visit(store);
        }
        self.visit(inst);
    }

    /// Returns the op that writes the contents of a cache view.
    fn storing_op(&self, mut v: Value) -> Option<Inst> {
        while matches!(
            self.graph.def_op(v),
            Op::Reshape(_) | Op::Permute(_) | Op::Slice(_)
        ) {
            v = self.graph.inst(self.def(v)).operands[0];
        }
        matches!(self.graph.def_op(v), Op::SetRows(_)).then(|| self.def(v))
    }

    fn value(&mut self, v: Value) {
        self.visit(self.def(v));
    }

    fn visit(&mut self, inst: Inst) {
        let mut open = vec![(inst, 0)];
        while let Some((inst, k)) = open.pop() {
            if self.is_done[inst.index()] {
                continue;
            }
            match self.graph.inst(inst).operands.get(k) {
                Some(&v) => {
                    open.push((inst, k + 1));
                    open.push((self.def(v), 0));
                }
                None => {
                    self.is_done[inst.index()] = true;
                    self.order.push(inst);
                }
            }
        }
    }
}
