//! Groups instructions into launches.
//!
//! Every instruction that computes or moves data belongs to one launch. Leaves, and views outside of fused launches,
//! need no launch. A launch covers several instructions if the target has a kernel for them. Values that only their own
//! launch reads need no buffer.

mod groups;
mod print;

pub use print::print;
pub(crate) use print::work;

use tpc_ir::program::{LaunchData, Target, Work};
use tpc_ir::{Graph, Inst};

use crate::layout::Layouts;
use groups::Groups;

/// Returns the launches in program order. A fused launch has the position of one of its instructions.
pub fn cover(graph: &Graph, layouts: &Layouts, target: &dyn Target) -> Vec<LaunchData> {
    let groups = Groups::of(graph, layouts, target);
    graph
        .insts()
        .filter_map(|(inst, _)| match groups.launch_at(inst) {
            Some(insts) => Some(launch(graph, insts.to_vec())),
            None if groups.contains(inst) || !layouts.is_launched(graph, inst) => None,
            None => Some(launch(graph, vec![inst])),
        })
        .collect()
}

fn launch(graph: &Graph, insts: Vec<Inst>) -> LaunchData {
    let first = insts[0];
    let data = graph.inst(first);
    let mut places: Vec<_> = data.results.iter().map(|v| graph.value(*v).place).collect();
    let transfer = data.op.is_transfer();
    if !transfer {
        places.dedup();
    }
    // All places run the same instructions after a collective, so the name lists one place's instructions.
    let at_first = |i: &&Inst| {
        let results = &graph.inst(**i).results;
        !transfer || **i == first || graph.value(results[0]).place == places[0]
    };
    let names = insts.iter().filter(at_first);
    let names = names.map(|i| graph.inst(*i).op.name());
    let kernel = names.collect::<Vec<_>>().join("_");
    let work = match transfer && insts.len() == 1 {
        true => Work::Transfer(first),
        false => Work::Compute(insts),
    };
    LaunchData {
        kernel,
        places,
        work,
    }
}
