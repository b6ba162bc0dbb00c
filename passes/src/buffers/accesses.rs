use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Output, Value};

use crate::layout::Layouts;
use crate::schedule::Order;

pub(super) fn reads<'a>(
    graph: &'a Graph,
    launch: &'a LaunchData,
) -> impl Iterator<Item = Value> + 'a {
    let stored = match launch.work {
        Work::Store(n) => Some(graph.outputs[n].value()),
        Work::Compute(_) | Work::Transfer(_) => None,
    };
    let operands = |&i| graph.inst(i).operands.iter().copied();
    stored
        .into_iter()
        .chain(launch.covered_insts().iter().flat_map(operands))
}

pub(super) fn writes<'a>(
    graph: &'a Graph,
    launch: &'a LaunchData,
) -> impl Iterator<Item = Value> + 'a {
    let stored = match launch.work {
        Work::Store(n) => match graph.outputs[n] {
            Output::State { state, .. } => Some(state),
            Output::Named(..) => None,
        },
        Work::Compute(_) | Work::Transfer(_) => None,
    };
    let results = |&i| graph.inst(i).results.iter().copied();
    stored
        .into_iter()
        .chain(launch.covered_insts().iter().flat_map(results))
}

/// Returns, per non-view value, the last launch that reads the value or a view of it. `None` for unread values,
/// outputs, and values that a later phase reads.
pub(super) fn last_reads(
    graph: &Graph,
    layouts: &Layouts,
    launches: &[LaunchData],
    order: &Order,
) -> Vec<Option<usize>> {
    let n = graph.values().len();
    let mut out = vec![None; n];
    let mut kept = vec![false; n];
    let mut phase_of = vec![0; n];
    let content = |v: Value| layouts.base(v);
    let mut position = 0;
    for (phase, (_, of)) in order.phases.iter().enumerate() {
        for &launch in of {
            let launch = &launches[launch.index()];
            for v in writes(graph, launch) {
                phase_of[v.index()] = phase;
            }
            for v in reads(graph, launch).map(content) {
                out[v.index()] = Some(position);
                let lasts = graph.def_op(v).is_stored();
                kept[v.index()] |= !lasts && phase_of[v.index()] != phase;
            }
            position += 1;
        }
    }
    for output in &graph.outputs {
        kept[content(output.value()).index()] = true;
    }
    for (out, kept) in out.iter_mut().zip(kept) {
        if kept {
            *out = None;
        }
    }
    out
}
