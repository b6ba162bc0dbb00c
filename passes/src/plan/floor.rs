//! What every set of options costs at least: the bound that a plan states where not all sets were priced.

use tpc_ir::factor::Var;

use super::options::{SplitOption, clash};
use super::price::Pricer;
use super::region::Region;
use super::search::independent_sets;
use crate::factors::Term;

/// Sets of the options that one instruction meets, at most; one with more counts nothing.
const SETS: usize = 512;

impl Pricer<'_> {
    /// A lower bound on [`Price::objective`](super::Price::objective) of a region for every compatible set of `options`.
    ///
    /// Each instruction takes the options that suit it best, whatever the others take, and collectives cost nothing. The
    /// busiest device has at least as much to do as any one of them.
    pub(super) fn floor(&self, region: &Region, options: &[&SplitOption]) -> f64 {
        let n = self.shares.len();
        let mut busy = vec![0.0; n];
        for &inst in &region.insts {
            let data = self.graph.inst(inst);
            let leaves: Vec<Var> = (data.operands.iter().chain(&data.results))
                .flat_map(|v| self.analysis.terms[v.index()].iter().flat_map(Term::leaves))
                .collect();
            let met: Vec<usize> = (0..options.len())
                .filter(|&o| options[o].leaves.iter().any(|l| leaves.contains(l)))
                .collect();
            let conflict = |a: usize, b: usize| clash(self.analysis, options[a], options[b]);
            let (sets, complete) = independent_sets(&met, SETS, &conflict);
            if !complete {
                continue;
            }
            for (rank, busy) in busy.iter_mut().enumerate() {
                let us = sets.iter().map(|set| {
                    let set: Vec<&SplitOption> = set.iter().map(|&i| options[met[i]]).collect();
                    self.share_us(inst, &set, rank)
                });
                *busy += us.fold(f64::INFINITY, f64::min);
            }
        }
        busy.into_iter().fold(0.0, f64::max)
    }
}
