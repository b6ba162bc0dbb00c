//! Lifetimes of values, as positions in the linear order of launches.

use tpc_ir::program::LaunchData;
use tpc_ir::{Graph, Op, Value};

use super::accesses::{reads, writes};
use super::aliases::Aliases;
use crate::schedule::Order;

pub(super) struct Lifetimes {
    pub(super) of: Vec<(usize, usize)>,
}

impl Lifetimes {
    pub(super) fn of(
        graph: &Graph,
        shared: &Aliases,
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
                    // A value that a later phase reads lives to the end, because a phase may run again.
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
            // The host writes all inputs before the first launch; few inputs belong to later phases.
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
