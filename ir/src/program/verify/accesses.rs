use crate::entity::{Inst, Launch, Value};
use crate::program::{Program, Work};

pub(super) fn reads(program: &Program, launch: Launch) -> Vec<Value> {
    let data = program.launch(launch);
    let graph = &program.graph;
    if let Work::Store(output) = data.work {
        return graph
            .outputs
            .get(output)
            .map(crate::graph::Output::value)
            .into_iter()
            .collect();
    }
    let inside = |v: &Value| data.covered_insts().contains(&graph.value(*v).def.0);
    let mut out: Vec<Value> = data
        .covered_insts()
        .iter()
        .flat_map(|&i| graph.inst(i).operands.iter().copied())
        .filter(|v| !inside(v))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

pub(super) fn writes(program: &Program, launch: Launch) -> Vec<Value> {
    let data = program.launch(launch);
    let of = |&i: &Inst| program.graph.inst(i).results.iter().copied();
    let all = data.covered_insts().iter().flat_map(of);
    all.filter(|v| program.home(*v).is_some()).collect()
}
