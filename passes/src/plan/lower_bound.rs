//! A lower bound on the price of all assignments, for incomplete searches.

use tpc_ir::factor::Var;

use super::layer_group::LayerGroup;
use super::options::{SplitOption, clash};
use super::price::Pricer;
use super::search::assignments;
use crate::factors::Summand;

/// The maximum number of assignments tried per instruction. Instructions with more assignments are omitted from the
/// bound.
const LIMIT: usize = 512;

impl Pricer<'_> {
    /// Returns a lower bound on [`Price::objective`](super::Price::objective) of a layer group for every assignment of
    /// `options`.
    ///
    /// Each instruction takes its cheapest options independently, and collectives are free. The bound is the largest
    /// load of any device.
    pub(super) fn lower_bound(&self, group: &LayerGroup, options: &[&SplitOption]) -> f64 {
        let firsts = self.first_alike(options).into_iter().enumerate();
        let firsts = firsts.filter(|(rank, first)| rank == first);
        let mut busy: Vec<(usize, f64)> = firsts.map(|(rank, _)| (rank, 0.0)).collect();
        let analysis = self.facts.analysis;
        for &inst in &group.insts {
            let data = self.facts.graph.inst(inst);
            let leaves: Vec<Var> = (data.operands.iter().chain(&data.results))
                .flat_map(|v| {
                    analysis.summands[v.index()]
                        .iter()
                        .flat_map(Summand::leaves)
                })
                .collect();
            let met: Vec<usize> = (0..options.len())
                .filter(|&o| options[o].leaves.iter().any(|l| leaves.contains(l)))
                .collect();
            let conflict = |a: usize, b: usize| clash(analysis, options[a], options[b]);
            let (sets, complete) = assignments(&met, LIMIT, &conflict);
            if !complete {
                continue;
            }
            for (rank, busy) in &mut busy {
                let us = sets.iter().map(|set| {
                    let set: Vec<&SplitOption> = set.iter().map(|&i| options[met[i]]).collect();
                    self.inst_us(inst, &set, *rank)
                });
                *busy += us.fold(f64::INFINITY, f64::min);
            }
        }
        busy.into_iter().map(|(_, us)| us).fold(0.0, f64::max)
    }
}
