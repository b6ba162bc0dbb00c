//! Finds the boundaries between a model's layers.
//!
//! Between two blocks only the residual stream is alive. These points divide the program into *sections*; a section
//! of several ops is a block. A block with a state (a cache or a recurrent state), such as a token mixer, begins a
//! layer. A block without a state (feed-forward) belongs to the layer before it. Ops before the first block and after
//! the last block belong to no layer.

use std::collections::BTreeSet;

use tpc_ir::{Graph, InstData, Op, RANK, Value};

use super::rebuild::{Changes, rebuild};

pub(super) fn assign(graph: &Graph) -> (Graph, u32) {
    let (layers, n) = layers(graph);
    let dims = |v: Value| -> [tpc_ir::Dim; RANK] { graph.value(v).ty.dims.clone() };
    let changes = Changes {
        dims: &dims,
        layers: &layers,
        inputs: &BTreeSet::new(),
    };
    (rebuild(graph, &changes), n)
}

struct Flow<'g> {
    insts: Vec<&'g InstData>,
    /// Values that depend on weights.
    stream: Vec<bool>,
    /// Values that depend only on states.
    stateful: Vec<bool>,
    last_use: Vec<usize>,
}

impl Flow<'_> {
    fn new(graph: &Graph) -> Flow<'_> {
        let n = graph.values().len();
        let mut flow = Flow {
            insts: graph.insts().map(|(_, d)| d).collect(),
            stream: vec![false; n],
            stateful: vec![false; n],
            last_use: vec![0; n],
        };
        for (inst, data) in graph.insts() {
            for v in &data.operands {
                flow.last_use[v.index()] = inst.index();
            }
            let any = |f: &dyn Fn(Value) -> bool| data.operands.iter().any(|&v| f(v));
            let is_weight = |v: Value| matches!(graph.def_op(v), Op::Weight(_));
            let flows = any(&|v| flow.stream[v.index()] || is_weight(v));
            let keeps = any(&|v| flow.stateful[v.index()]) || matches!(data.op, Op::State(_));
            for v in &data.results {
                flow.stream[v.index()] = flows;
                flow.stateful[v.index()] = keeps && !flows;
            }
        }
        flow
    }

    fn sections(&self) -> Vec<Vec<usize>> {
        let mut out: Vec<Vec<usize>> = Vec::new();
        let mut section = Vec::new();
        let mut alive: BTreeSet<Value> = BTreeSet::new();
        for (i, data) in self.insts.iter().enumerate() {
            if !data.results.iter().any(|v| self.stream[v.index()]) {
                continue;
            }
            section.push(i);
            alive.extend(&data.results);
            alive.retain(|v| self.last_use[v.index()] > i);
            if alive.len() == 1 {
                out.push(std::mem::take(&mut section));
            }
        }
        out.push(section);
        out
    }

    fn mixes(&self, section: &[usize]) -> bool {
        let reads_state = |&i: &usize| {
            let mut operands = self.insts[i].operands.iter();
            operands.any(|v| self.stateful[v.index()])
        };
        section.iter().any(reads_state)
    }

    /// True if a later instruction reads the result of the section.
    fn goes_on(&self, section: &[usize]) -> bool {
        section.last().is_some_and(|&i| {
            let mut results = self.insts[i].results.iter();
            results.any(|v| self.last_use[v.index()] > i)
        })
    }
}

fn layers(graph: &Graph) -> (Vec<Option<u32>>, u32) {
    let flow = Flow::new(graph);
    let sections = flow.sections();
    let mut layers = vec![None; flow.insts.len()];
    let (mut current, mut n): (Option<u32>, u32) = (None, 0);
    let last = sections
        .iter()
        .rposition(|s| s.len() > 1 && flow.goes_on(s));
    for section in sections.iter().take(last.map_or(0, |l| l + 1)) {
        if flow.mixes(section) {
            current = Some(n);
            n += 1;
        }
        for &i in section {
            layers[i] = current;
        }
    }
    leaves(graph, &flow, &mut layers);
    (layers, n)
}

/// Puts leaves and values computed only from states into the layer that uses them. A leaf of several layers gets no
/// layer, so that all layers stay the same.
fn leaves(graph: &Graph, flow: &Flow<'_>, layers: &mut [Option<u32>]) {
    let mut users: Vec<BTreeSet<Option<u32>>> = vec![BTreeSet::new(); graph.values().len()];
    for (inst, data) in graph.insts().rev() {
        let i = inst.index();
        let is_leaf = |v: &Value| flow.stateful[v.index()] || data.op.is_stored();
        if data.results.iter().any(is_leaf) {
            let using = |v: &Value| users[v.index()].iter().copied();
            let all: BTreeSet<_> = data.results.iter().flat_map(using).collect();
            layers[i] = match Vec::from_iter(all)[..] {
                [layer] => layer,
                _ => None,
            };
        }
        for v in &data.operands {
            users[v.index()].insert(layers[i]);
        }
    }
}
