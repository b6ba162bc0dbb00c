//! What no output needs.

use tpc_ir::{Graph, Op, Value};

use super::{Key, append, empty_like, mapped};

/// Per instruction, whether an output depends on it. Leaves are the signature of programs, and what a plan reports: they
/// count as if.
pub(super) fn alive(graph: &Graph) -> Vec<bool> {
    let mut needed = vec![false; graph.values().len()];
    for output in &graph.outputs {
        needed[output.value().index()] = true;
    }
    let mut alive = vec![false; graph.insts().len()];
    for (inst, data) in graph.insts().rev() {
        let lives = matches!(data.op, Op::Input(_) | Op::State(_) | Op::Weight(_))
            || data.results.iter().any(|v| needed[v.index()]);
        if lives {
            alive[inst.index()] = true;
            for v in &data.operands {
                needed[v.index()] = true;
            }
        }
    }
    alive
}

/// The graph of the instructions that are alive.
pub(super) fn without(from: &Graph, alive: &[bool]) -> Graph {
    let mut out = empty_like(from);
    // What is dropped has no reader: its place in the map is never asked for.
    let mut map: Vec<Option<Value>> = vec![None; from.values().len()];
    for (_, data) in from.insts().filter(|(inst, _)| alive[inst.index()]) {
        let operands: Option<Vec<Value>> = data.operands.iter().map(|v| map[v.index()]).collect();
        let key = Key {
            op: data.op.clone(),
            operands: operands.unwrap_or_default(),
            places: data.results.iter().map(|&v| from.value(v).place).collect(),
            layer: data.layer,
        };
        let made = append(&mut out, from, &data.results, &key);
        for (old, new) in data.results.iter().zip(made) {
            map[old.index()] = Some(new);
        }
    }
    out.outputs = mapped(&from.outputs, |v| map[v.index()].unwrap_or(v));
    out
}
