//! A graph with symbols beside one with numbers: the sizes with which they are the same.

use tpc_ir::{Bindings, Dim, Graph, Output, Symbol};

use super::CapturedGraph;

impl CapturedGraph {
    /// The size of each symbol with which this graph is `fixed`, which has none: op by op, with every attribute, size and
    /// operand. `None` where there are no such sizes.
    pub fn sizes_of(&self, fixed: &CapturedGraph) -> Option<Bindings> {
        let sizes = solved(&self.graph, &fixed.graph)?;
        is_same(&self.graph, &fixed.graph, &sizes)?.then_some(sizes)
    }
}

/// The size of each symbol, from axes that are a multiple of one. Symbols that no such axis has are 1.
fn solved(graph: &Graph, fixed: &Graph) -> Option<Bindings> {
    if graph.values().len() != fixed.values().len() {
        return None;
    }
    let mut open: Vec<Symbol> = Symbol::ALL.into();
    let mut out = Bindings::default();
    for ((_, data), (_, of)) in graph.values().zip(fixed.values()) {
        for (dim, n) in data.ty.dims.iter().zip(&of.ty.dims) {
            if dim.as_const().is_some() {
                continue;
            }
            let found = open.iter().position(|&s| dim.mentions(s));
            let times = |s: Symbol| dim.checked_div(&Dim::symbol(s))?.as_const();
            let Some((at, times)) = found.and_then(|at| Some((at, times(open[at])?))) else {
                continue;
            };
            out = out.with(open.swap_remove(at), n.as_const()?.checked_div(times)?);
        }
    }
    Some(out)
}

/// Whether a graph with these sizes is another graph; `None` where it has attributes that no such sizes give.
fn is_same(graph: &Graph, fixed: &Graph, sizes: &Bindings) -> Option<bool> {
    let number = |d: &Dim| d.eval(sizes).map(Dim::constant);
    if graph.insts().len() != fixed.insts().len() || graph.outputs.len() != fixed.outputs.len() {
        return Some(false);
    }
    for ((_, a), (_, b)) in graph.insts().zip(fixed.insts()) {
        let alike = a.operands == b.operands && a.results == b.results;
        if !alike || a.op.map_dims(&mut |d| number(d))? != b.op {
            return Some(false);
        }
    }
    for ((_, a), (_, b)) in graph.values().zip(fixed.values()) {
        let dims = a.ty.dims.iter().zip(&b.ty.dims);
        let alike = a.ty.dtype == b.ty.dtype && a.place == b.place;
        if !alike || !dims.into_iter().all(|(a, b)| number(a).as_ref() == Some(b)) {
            return Some(false);
        }
    }
    // The names of results are for people.
    let value = |o: &Output| match o {
        Output::Named(_, v) => (None, *v),
        Output::State { state, value } => (Some(*state), *value),
    };
    let outputs = graph.outputs.iter().zip(&fixed.outputs);
    Some(outputs.into_iter().all(|(a, b)| value(a) == value(b)))
}
