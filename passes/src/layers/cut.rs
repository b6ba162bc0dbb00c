use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tpc_ir::{Graph, Inst};

/// Returns the instructions of each layer, in program order.
pub fn insts_by_layer(graph: &Graph) -> BTreeMap<u32, Vec<Inst>> {
    let mut out: BTreeMap<u32, Vec<Inst>> = BTreeMap::new();
    for (inst, data) in graph.insts() {
        if let Some(layer) = data.layer {
            out.entry(layer).or_default().push(inst);
        }
    }
    out
}

/// True for values, by index, that another layer reads or that are outputs.
pub fn live_out(graph: &Graph) -> Vec<bool> {
    let mut out = vec![false; graph.values().len()];
    for (_, data) in graph.insts() {
        for &v in &data.operands {
            let layer = graph.inst(graph.value(v).def.0).layer;
            out[v.index()] |= layer != data.layer;
        }
    }
    for o in &graph.outputs {
        out[o.value().index()] = true;
    }
    out
}

/// Cuts a graph into runs of at most `longest` instructions; the first instruction of each layer starts a run.
pub fn layer_runs(graph: &Graph, longest: usize) -> Vec<Range<usize>> {
    let mut seen: BTreeSet<u32> = BTreeSet::new();
    let mut starts = vec![0];
    for (i, data) in graph.insts() {
        let new = data.layer.is_some_and(|l| seen.insert(l));
        let i = i.index();
        if i > 0 && (new || i - starts[starts.len() - 1] >= longest) {
            starts.push(i);
        }
    }
    let ends = starts[1..].iter().copied().chain([graph.insts().len()]);
    let runs = starts.iter().copied().zip(ends);
    runs.map(|(a, b)| a..b).collect()
}
