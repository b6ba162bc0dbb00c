use tpc_ir::{Bindings, DType, Dim, Graph, Op, Output, Place, RANK, Symbol, Value};

use super::CapturedGraph;

impl CapturedGraph {
    /// Returns the symbol sizes for which this graph equals `fixed`, a graph without symbols. Compares all ops except
    /// views that keep the order of elements, because sizes of 1 add or remove such views.
    pub fn sizes_of(&self, fixed: &CapturedGraph) -> Option<Bindings> {
        let sizes = solve_sizes(self, fixed)?;
        let own = Form::of(&self.graph, &sizes)?;
        let other = Form::of(&fixed.graph, &Bindings::default())?;
        (own == other).then_some(sizes)
    }
}

/// Returns the op and the sizes of each leaf. The op has the leaf's name.
fn leaves(graph: &Graph) -> impl Iterator<Item = (&Op, &[Dim; RANK])> {
    graph.insts().filter_map(|(_, data)| {
        let is_leaf = matches!(data.op, Op::Input(_) | Op::State(_) | Op::Weight(_));
        let dims = &graph.value(*data.results.first()?).ty.dims;
        is_leaf.then_some((&data.op, dims))
    })
}

/// Solves for each symbol's size, using leaf axes that are a multiple of one symbol. Other symbols keep the captured
/// size.
fn solve_sizes(any: &CapturedGraph, fixed: &CapturedGraph) -> Option<Bindings> {
    let mut open: Vec<Symbol> = Symbol::ALL.into();
    let mut out = Bindings::default();
    for &(symbol, n) in &any.batch {
        out = out.with(symbol, n);
    }
    for ((op, dims), (same, numbers)) in leaves(&any.graph).zip(leaves(&fixed.graph)) {
        if op.name() != same.name() {
            return None;
        }
        for (dim, n) in dims.iter().zip(numbers) {
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

/// A tensor: the number of its element sequence, which views in the same order share, and its sizes.
type Seen = (usize, [u64; RANK]);

#[derive(PartialEq)]
struct Step {
    op: Op,
    operands: Vec<Seen>,
    results: Vec<(DType, [u64; RANK], Place)>,
}

/// The computation of a graph for one batch.
#[derive(PartialEq)]
struct Form {
    steps: Vec<Step>,
    /// The results, without names.
    outputs: Vec<(Option<Seen>, Seen)>,
}

impl Form {
    /// Returns the computation for one batch; `None` if a size is unknown.
    fn of(graph: &Graph, sizes: &Bindings) -> Option<Form> {
        let dims = |v: Value| -> Option<[u64; RANK]> {
            let mut out = [0; RANK];
            for (n, d) in out.iter_mut().zip(&graph.value(v).ty.dims) {
                *n = d.eval(sizes)?;
            }
            Some(out)
        };
        let mut numbers: Vec<usize> = vec![0; graph.values().len()];
        let mut next = 0;
        let mut steps = Vec::new();
        for (_, data) in graph.insts() {
            let op = data
                .op
                .map_dims(&mut |d| d.eval(sizes).map(Dim::constant))?;
            if let ([x], [y]) = (data.operands.as_slice(), data.results.as_slice())
                && keeps_order(&op, dims(*x)?, dims(*y)?)
            {
                numbers[y.index()] = numbers[x.index()];
                continue;
            }
            let operands = data.operands.iter();
            let operands: Option<Vec<Seen>> = operands
                .map(|&v| Some((numbers[v.index()], dims(v)?)))
                .collect();
            let mut results = Vec::new();
            for &v in &data.results {
                numbers[v.index()] = next;
                next += 1;
                let value = graph.value(v);
                results.push((value.ty.dtype, dims(v)?, value.place));
            }
            let operands = operands?;
            steps.push(Step {
                op,
                operands,
                results,
            });
        }
        let seen = |v: Value| Some((numbers[v.index()], dims(v)?));
        let outputs = graph.outputs.iter().map(|o| match o {
            Output::Named(_, v) => Some((None, seen(*v)?)),
            Output::State { state, value } => Some((Some(seen(*state)?), seen(*value)?)),
        });
        let outputs: Option<_> = outputs.collect();
        let outputs = outputs?;
        Some(Form { steps, outputs })
    }
}

fn keeps_order(op: &Op, from: [u64; RANK], to: [u64; RANK]) -> bool {
    match op {
        Op::Reshape(_) => true,
        Op::Slice(_) => from == to,
        Op::Permute(p) => {
            let moved = (0..RANK).filter(|&i| from[i] != 1).map(|i| p.axes[i]);
            moved.is_sorted()
        }
        _ => false,
    }
}
