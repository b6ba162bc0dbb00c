//! Lifetimes, as positions in the linear order of launches.

use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Op, Output, Value};

use super::share::Shared;
use crate::layout::Layouts;
use crate::schedule::Order;

/// The lifetime of the buffer of each value that has one of its own.
pub(super) struct Lifetimes {
    /// The first and the last position at which it must be there.
    pub(super) of: Vec<(usize, usize)>,
}

impl Lifetimes {
    pub(super) fn of(
        graph: &Graph,
        shared: &Shared,
        launches: &[LaunchData],
        order: &Order,
    ) -> Lifetimes {
        let owner = |v: Value| shared.owners[v.index()].index();
        let n = graph.values().len();
        let mut first: Vec<Option<usize>> = vec![None; n];
        let mut last = vec![0; n];
        let mut born = vec![0; n];
        let mut position = 0;
        let end: usize = order.phases.iter().map(|(_, l)| l.len()).sum();
        for (phase, (_, of)) in order.phases.iter().enumerate() {
            for &launch in of {
                let launch = &launches[launch.index()];
                for v in reads(graph, launch).chain(writes(graph, launch)) {
                    let at = owner(v);
                    if first[at].is_none() {
                        first[at] = Some(position);
                        born[at] = phase;
                    }
                    // A phase may run again.
                    last[at] = match born[at] == phase {
                        true => last[at].max(position),
                        false => end,
                    };
                }
                position += 1;
            }
        }
        for output in &graph.outputs {
            last[owner(output.value())] = end;
        }
        let mut of: Vec<(usize, usize)> = Vec::with_capacity(n);
        for (i, (first, last)) in first.into_iter().zip(last).enumerate() {
            // The host writes inputs before the first launch; those of later phases are few.
            let input = matches!(graph.def_op(Value::new(i)), Op::Input(_));
            let start = match input {
                true => 0,
                false => first.unwrap_or(0),
            };
            of.push((start, last.max(start)));
        }
        Lifetimes { of }
    }
}

/// The values that a launch reads.
fn reads<'a>(graph: &'a Graph, launch: &'a LaunchData) -> impl Iterator<Item = Value> + 'a {
    let stored = match launch.work {
        Work::Store(n) => Some(graph.outputs[n].value()),
        Work::Compute(_) | Work::Transfer(_) => None,
    };
    let operands = |&i| graph.inst(i).operands.iter().copied();
    stored
        .into_iter()
        .chain(launch.covers().iter().flat_map(operands))
}

/// The values that a launch writes.
fn writes<'a>(graph: &'a Graph, launch: &'a LaunchData) -> impl Iterator<Item = Value> + 'a {
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
        .chain(launch.covers().iter().flat_map(results))
}

/// Per value that is no view, the position of the last launch that reads it or a view of it; `None` where nothing does, or
/// where it is delivered at the end or read in a later phase.
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
