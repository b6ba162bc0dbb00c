//! Cover: the instructions as launches.
//!
//! Every instruction that computes or moves is covered by one launch; leaves and views by none.

use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Inst};

use crate::layout::Layouts;

/// The launches of a graph, in program order of their last instructions.
pub fn cover(graph: &Graph, layouts: &Layouts) -> Vec<LaunchData> {
    graph
        .insts()
        .filter(|(inst, data)| {
            let leaf = data.op.is_stored() || matches!(data.op, tpc_ir::Op::Input(_));
            !leaf && !layouts.is_view(graph, *inst)
        })
        .map(|(inst, _)| alone(graph, inst))
        .collect()
}

/// The launch that covers one instruction.
fn alone(graph: &Graph, inst: Inst) -> LaunchData {
    let data = graph.inst(inst);
    let mut places: Vec<_> = data.results.iter().map(|v| graph.value(*v).place).collect();
    let work = match data.op.is_transfer() {
        true => Work::Transfer(inst),
        false => {
            places.dedup();
            Work::Compute(vec![inst])
        }
    };
    LaunchData {
        kernel: data.op.name().to_owned(),
        places,
        work,
    }
}
