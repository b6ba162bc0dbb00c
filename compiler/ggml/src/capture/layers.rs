//! Where one layer ends and the next begins.
//!
//! Between two blocks of a model only the residual stream is alive. Such places cut the program into pieces; a piece of
//! more than one op is a block. A block that works on a state (a cache, a recurrent state) begins a layer, as mixers of
//! tokens do; blocks without (feed-forward) belong to the layer before. What comes before the first and after the last
//! block belongs to none.

use std::collections::BTreeSet;

use tpc_ir::{Graph, Op, RANK, Value};

use super::rebuild::{Changes, rebuild};

/// The graph with the layers of its instructions, and their number.
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

fn layers(graph: &Graph) -> (Vec<Option<u32>>, u32) {
    let n_insts = graph.insts().len();
    // Values of the stream depend on weights; what is worked out from states or inputs alone is ready at any time.
    let mut stream = vec![false; graph.values().len()];
    let mut stateful = vec![false; graph.values().len()];
    let mut last_use: Vec<usize> = vec![0; graph.values().len()];
    for (inst, data) in graph.insts() {
        for v in &data.operands {
            last_use[v.index()] = inst.index();
        }
        let any = |f: &dyn Fn(Value) -> bool| data.operands.iter().any(|&v| f(v));
        let flows = any(&|v| stream[v.index()] || matches!(graph.def_op(v), Op::Weight(_)));
        let kept = any(&|v| stateful[v.index()]) || matches!(data.op, Op::State(_));
        for v in &data.results {
            stream[v.index()] = flows;
            stateful[v.index()] = kept && !flows;
        }
    }
    // Ops of the stream in order.
    let ops: Vec<usize> = graph
        .insts()
        .filter(|(_, d)| d.results.iter().any(|v| stream[v.index()]))
        .map(|(i, _)| i.index())
        .collect();
    let mut pieces: Vec<Vec<usize>> = Vec::new();
    let mut piece = Vec::new();
    let mut alive: BTreeSet<Value> = BTreeSet::new();
    let insts: Vec<_> = graph.insts().map(|(_, d)| d).collect();
    for &i in &ops {
        piece.push(i);
        let data = insts[i];
        alive.extend(&data.results);
        alive.retain(|v| last_use[v.index()] > i);
        if alive.len() == 1 {
            pieces.push(std::mem::take(&mut piece));
        }
    }
    pieces.push(piece);
    let mut layers = vec![None; n_insts];
    let (mut current, mut n): (Option<u32>, u32) = (None, 0);
    let is_block = |p: &[usize]| p.len() > 1;
    let last = pieces
        .iter()
        .rposition(|p| is_block(p) && ends_alive(p, &insts, &last_use));
    for (i, piece) in pieces.iter().enumerate() {
        if last.is_none_or(|l| i > l) {
            break;
        }
        let mixes = piece
            .iter()
            .any(|&i| insts[i].operands.iter().any(|v| stateful[v.index()]));
        if mixes {
            current = Some(n);
            n += 1;
        }
        for &i in piece {
            layers[i] = current;
        }
    }
    // Weights and states, and what is worked out from states alone, belong to the layer that uses them, if one does: a
    // table that all layers share makes none of them differ from the others.
    let mut users: Vec<BTreeSet<Option<u32>>> = vec![BTreeSet::new(); graph.values().len()];
    for (inst, data) in graph.insts().rev() {
        let i = inst.index();
        let is_late = data
            .results
            .iter()
            .any(|v| stateful[v.index()] || data.op.is_stored());
        if is_late {
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
    (layers, n)
}

/// Whether something reads what the piece ends with.
fn ends_alive(piece: &[usize], insts: &[&tpc_ir::InstData], last_use: &[usize]) -> bool {
    piece
        .last()
        .is_some_and(|&i| insts[i].results.iter().any(|v| last_use[v.index()] > i))
}
