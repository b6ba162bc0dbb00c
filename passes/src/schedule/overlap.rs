//! Overlap: within a layer, launches whose results another place needs run first. Launches that need another place's
//! results run last.
//!
//! A queue is linear, so a launch that waits for another place delays all later launches. Launches are sorted by two
//! counts: the transfers on the longest path to the launch and on the longest path from it, within the layer. Along a
//! dependence the first count never falls and the second never rises, so sorting by both keeps every dependence.
//!
//! A layer keeps the program order if no place gets a result back, or if no place has other work to do.

use std::cmp::Reverse;

use tpc_ir::program::{LaunchData, Work};
use tpc_ir::{Graph, Inst, Launch, Op, Place, Value};

use crate::layout::Layouts;

/// Sorts the launches of a phase, layer by layer. Stores keep their positions, because the order determines which
/// stores exist.
pub(super) fn overlap(
    graph: &Graph,
    layouts: &Layouts,
    launches: &[LaunchData],
    order: &mut [Launch],
) {
    if !has_round_trip(graph, launches, order) {
        return;
    }
    let mut layer = Layer::new(graph, layouts, launches);
    let mut rest = order;
    while !rest.is_empty() {
        let len = layer.prefix_len(rest);
        let (run, behind) = rest.split_at_mut(len.max(1));
        layer.sort(run);
        rest = behind;
    }
}

fn has_round_trip(graph: &Graph, launches: &[LaunchData], order: &[Launch]) -> bool {
    let moves = |launch: &&Launch| {
        let data = &launches[launch.index()];
        let copies = |inst: &Inst| matches!(graph.inst(*inst).op, Op::Copy(_));
        data.covered_insts().iter().any(copies) && !moves_input(graph, data)
    };
    order.iter().filter(moves).nth(1).is_some()
}

fn moves_input(graph: &Graph, launch: &LaunchData) -> bool {
    let Work::Transfer(inst) = launch.work else {
        return false;
    };
    let data = graph.inst(inst);
    let is_input = |v: &Value| matches!(graph.def_op(*v), Op::Input(_));
    matches!(data.op, Op::Copy(_)) && data.operands.iter().all(is_input)
}

#[derive(Clone, Copy, Default)]
struct PathCost {
    to: u32,
    from: u32,
}

struct Layer<'a> {
    graph: &'a Graph,
    layouts: &'a Layouts,
    launches: &'a [LaunchData],
    writer: Vec<Option<usize>>,
    readers: Vec<Vec<usize>>,
}

impl<'a> Layer<'a> {
    fn new(graph: &'a Graph, layouts: &'a Layouts, launches: &'a [LaunchData]) -> Layer<'a> {
        let n = graph.values().len();
        Layer {
            graph,
            layouts,
            launches,
            writer: vec![None; n],
            readers: vec![Vec::new(); n],
        }
    }

    /// Returns the number of initial launches that belong to one layer. A launch without a layer belongs to the launch
    /// before.
    fn prefix_len(&self, order: &[Launch]) -> usize {
        let mut layer = None;
        let same = |launch: &&Launch| {
            let data = &self.launches[launch.index()];
            let first = data.covered_insts().first();
            let own = first.and_then(|i| self.graph.inst(*i).layer);
            let is_other = layer.is_some() && own.is_some() && layer != own;
            layer = layer.or(own);
            !is_other && !matches!(data.work, Work::Store(_))
        };
        order.iter().take_while(same).count()
    }

    fn sort(&mut self, run: &mut [Launch]) {
        if !has_round_trip(self.graph, self.launches, run) {
            return;
        }
        let before = self.dependences(run);
        let mut ways = vec![PathCost::default(); run.len()];
        for (at, before) in before.iter().enumerate() {
            for &b in before {
                let steps = self.steps(run[b], run[at]);
                ways[at].to = ways[at].to.max(ways[b].to + steps);
            }
        }
        for (at, before) in before.iter().enumerate().rev() {
            for &b in before {
                let steps = self.steps(run[b], run[at]);
                ways[b].from = ways[b].from.max(ways[at].from + steps);
            }
        }
        if !self.can_overlap(run, &ways) {
            return;
        }
        let mut sorted: Vec<usize> = (0..run.len()).collect();
        sorted.sort_by_key(|&at| {
            // Copies of inputs come first: once copied, an input's memory is free for other values.
            let of_input = moves_input(self.graph, &self.launches[run[at].index()]);
            (!of_input, ways[at].to, Reverse(ways[at].from), at)
        });
        if !self.reorders_work(run, &sorted) {
            return;
        }
        let old = run.to_vec();
        for (new, at) in run.iter_mut().zip(sorted) {
            *new = old[at];
        }
    }

    /// True if a place's own work changes order. Copied inputs that run earlier do not count.
    fn reorders_work(&self, run: &[Launch], sorted: &[usize]) -> bool {
        let data = |at: usize| &self.launches[run[at].index()];
        self.places(run).into_iter().any(|place| {
            let own = |at: &usize| {
                data(*at).places.contains(&place) && !moves_input(self.graph, data(*at))
            };
            let before = (0..run.len()).filter(own);
            !before.eq(sorted.iter().copied().filter(own))
        })
    }

    fn places(&self, run: &[Launch]) -> Vec<Place> {
        let of = |l: &Launch| self.launches[l.index()].places.iter().copied();
        let mut out: Vec<Place> = run.iter().flat_map(of).collect();
        out.sort();
        out.dedup();
        out
    }

    /// Returns, per launch, the earlier launches that must run before it.
    fn dependences(&mut self, run: &[Launch]) -> Vec<Vec<usize>> {
        let (graph, layouts, launches) = (self.graph, self.layouts, self.launches);
        let insts = |l: &Launch| {
            launches[l.index()]
                .covered_insts()
                .iter()
                .map(|i| graph.inst(*i))
        };
        let mut out = Vec::with_capacity(run.len());
        for (at, launch) in run.iter().enumerate() {
            let mut before = Vec::new();
            for data in insts(launch) {
                for (i, operand) in data.operands.iter().enumerate() {
                    let of = layouts.base(*operand).index();
                    before.extend(self.writer[of]);
                    if data.op.is_update() && i == 0 {
                        before.extend_from_slice(&self.readers[of]);
                    }
                    self.readers[of].push(at);
                }
                for result in &data.results {
                    self.writer[result.index()] = Some(at);
                }
            }
            before.retain(|b| *b != at);
            before.sort_unstable();
            before.dedup();
            out.push(before);
        }
        for data in run.iter().flat_map(insts) {
            for operand in &data.operands {
                self.readers[layouts.base(*operand).index()].clear();
            }
            for result in &data.results {
                self.writer[result.index()] = None;
            }
        }
        out
    }

    /// Returns 1 if the launches have no common place, otherwise 0.
    fn steps(&self, from: Launch, to: Launch) -> u32 {
        let [from, to] = [from, to].map(|l| &self.launches[l.index()].places);
        u32::from(!from.iter().any(|p| to.contains(p)))
    }

    fn can_overlap(&self, run: &[Launch], ways: &[PathCost]) -> bool {
        self.places(run).iter().any(|place| {
            let at = run.iter().zip(ways);
            let mut there = at.filter(|(l, _)| self.launches[l.index()].places.contains(place));
            let first = there.next().map(|(_, ways)| ways.to);
            there.any(|(_, ways)| Some(ways.to) != first)
        })
    }
}
