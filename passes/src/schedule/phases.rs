//! Phases: of a batch most can be computed when its tokens are known. What needs the tokens that come after these
//! ([`InputKind::NextTokens`]) waits until they are.

use tpc_ir::op::InputKind;
use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Launch, Op, Value};

/// The launches in a linear order, phase by phase.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// Per phase, how many tokens ahead must be known, and the launches.
    pub phases: Vec<(u32, Vec<Launch>)>,
}

/// The order of the launches of a graph. Programs without launches have one empty phase.
pub fn order(graph: &Graph, launches: &[LaunchData]) -> Order {
    let ahead = tokens_ahead(graph);
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
    out
}

/// Per instruction, how many tokens ahead must be known for it.
pub(crate) fn tokens_ahead(graph: &Graph) -> Vec<u32> {
    let mut out = vec![0; graph.insts().len()];
    for (inst, data) in graph.insts() {
        let of = |v: &Value| out[graph.value(*v).def.0.index()];
        let needed = data.operands.iter().map(of).max();
        out[inst.index()] = match &data.op {
            Op::Input(input) => match input.kind {
                InputKind::NextTokens(ahead) => ahead,
                _ => 0,
            },
            _ => needed.unwrap_or(0),
        };
    }
    out
}
