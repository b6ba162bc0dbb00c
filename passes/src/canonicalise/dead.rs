//! Dead code elimination.

use tpc_ir::{Graph, Op};

/// True per instruction that an output needs. Leaves count as needed: they are the programs' signature and part of the
/// plan.
fn alive(graph: &Graph) -> Vec<bool> {
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

pub(super) fn drop_dead(graph: &mut Graph) {
    let alive = alive(graph);
    if alive.contains(&false) {
        graph.retain(|inst| alive[inst.index()]);
    }
}
