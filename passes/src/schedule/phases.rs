//! Phases: most of a batch can be computed once its tokens are known. Only some launches wait for the tokens after the
//! batch ([`InputKind::NextTokens`](tpc_ir::op::InputKind::NextTokens)).

use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Launch};

use super::overlap::overlap;
use crate::layout::Layouts;
use crate::lookahead::lookahead_tokens;

/// A linear order of the launches, by phase.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Per phase, the number of tokens needed after the batch, and the launches.
    pub phases: Vec<(u32, Vec<Launch>)>,
}

/// Returns the order of launches: the program order within a phase, except in layers that `overlap.rs` sorts. Programs
/// without launches have one empty phase.
pub fn order(graph: &Graph, layouts: &Layouts, launches: &[LaunchData]) -> Order {
    let ahead = lookahead_tokens(graph);
    let of = |l: &LaunchData| match &l.work {
        Work::Compute(insts) => insts.iter().map(|i| ahead[i.index()]).max().unwrap_or(0),
        Work::Transfer(inst) => ahead[inst.index()],
        Work::Store(output) => {
            let value = graph.outputs[*output].value();
            ahead[graph.value(value).def.0.index()]
        }
    };
    let mut out = Order {
        phases: vec![(0, Vec::new())],
    };
    let mut sorted: Vec<(u32, Launch)> = launches
        .iter()
        .enumerate()
        .map(|(i, l)| (of(l), Launch::new(i)))
        .collect();
    sorted.sort();
    for (ahead, launch) in sorted {
        match out.phases.last_mut().filter(|(a, _)| *a == ahead) {
            Some((_, launches)) => launches.push(launch),
            None => out.phases.push((ahead, vec![launch])),
        }
    }
    for (_, of) in &mut out.phases {
        overlap(graph, layouts, launches, of);
    }
    out
}
