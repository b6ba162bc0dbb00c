//! How rewriting went.

use std::collections::BTreeMap;

use tpc_ir::Op;
use tpc_ir::op::{Collective, OpKind};

use super::template::Outcome;

/// When rewriting a region stops short of saturation, and which of the equal graphs is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rounds of all rules.
    pub iterations: usize,
    /// Terms.
    pub nodes: usize,
    /// Whether to take any graph, by these numbers, instead of the cheapest: all must be sound.
    pub any: Option<u64>,
}

impl Default for Limits {
    /// Far more than a layer of any architecture needs.
    fn default() -> Limits {
        Limits {
            iterations: 200,
            nodes: 20_000,
            any: None,
        }
    }
}

/// Why rewriting a region stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// The rules had nothing more to say.
    #[default]
    Saturated,
    /// The limit on rounds.
    Iterations,
    /// The limit on terms.
    Nodes,
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Stop::Saturated => "saturated",
            Stop::Iterations => "stopped at the limit of rounds",
            Stop::Nodes => "stopped at the limit of terms",
        })
    }
}

/// Numbers of transfers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All-reduces.
    pub all_reduce: usize,
    /// All-gathers.
    pub all_gather: usize,
    /// Reduce-scatters.
    pub reduce_scatter: usize,
    /// All-to-alls.
    pub all_to_all: usize,
    /// Copies between places.
    pub copies: usize,
}

impl Counts {
    pub(super) fn add(&mut self, op: &Op) {
        match op.kind() {
            OpKind::Collective(collective) => match collective {
                Collective::AllReduce => self.all_reduce += 1,
                Collective::AllGather => self.all_gather += 1,
                Collective::ReduceScatter => self.reduce_scatter += 1,
                Collective::AllToAll => self.all_to_all += 1,
            },
            OpKind::Copy => self.copies += 1,
            _ => {}
        }
    }

    /// Collectives, copies left out.
    pub const fn collectives(&self) -> usize {
        self.all_reduce + self.all_gather + self.reduce_scatter + self.all_to_all
    }

    /// All transfers.
    pub const fn total(&self) -> usize {
        self.collectives() + self.copies
    }

    fn join(&mut self, other: &Counts) {
        self.all_reduce += other.all_reduce;
        self.all_gather += other.all_gather;
        self.reduce_scatter += other.reduce_scatter;
        self.all_to_all += other.all_to_all;
        self.copies += other.copies;
    }
}

/// How rewriting the regions of one shape went.
#[derive(Clone, Debug, PartialEq)]
pub struct RegionReport {
    /// The layers that the regions begin with; none for what comes before the first.
    pub layers: Vec<Option<u32>>,
    /// Terms in the end.
    pub nodes: usize,
    /// Classes of equal terms.
    pub classes: usize,
    /// Rounds of all rules.
    pub iterations: usize,
    /// Why it stopped.
    pub stop: Stop,
    /// Per rule that found something, how often.
    pub matches: BTreeMap<&'static str, usize>,
    /// Transfers of one region before.
    pub before: Counts,
    /// Transfers of one region after.
    pub after: Counts,
}

/// How rewriting a graph went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Regions of one shape each, in order of appearance.
    pub regions: Vec<RegionReport>,
}

impl Report {
    pub(super) fn count(&mut self, at: usize, layer: Option<u32>, outcome: &Outcome) {
        if at == self.regions.len() {
            self.regions.push(RegionReport {
                layers: Vec::new(),
                nodes: outcome.nodes,
                classes: outcome.classes,
                iterations: outcome.iterations,
                stop: outcome.stop,
                matches: outcome.matches.clone(),
                before: outcome.before,
                after: outcome.after,
            });
        }
        self.regions[at].layers.push(layer);
    }

    fn sum(&self, of: impl Fn(&RegionReport) -> Counts) -> Counts {
        let mut out = Counts::default();
        for r in &self.regions {
            for _ in &r.layers {
                out.join(&of(r));
            }
        }
        out
    }

    /// Transfers of the whole graph before.
    pub fn before(&self) -> Counts {
        self.sum(|r| r.before)
    }

    /// Transfers of the whole graph after.
    pub fn after(&self) -> Counts {
        self.sum(|r| r.after)
    }

    /// Whether every region was rewritten to saturation.
    pub fn saturated(&self) -> bool {
        self.regions.iter().all(|r| r.stop == Stop::Saturated)
    }

    /// Per rule that found something in a distinct region, how often.
    pub fn matches(&self) -> BTreeMap<&'static str, usize> {
        let mut out = BTreeMap::new();
        for (rule, n) in self.regions.iter().flat_map(|r| &r.matches) {
            *out.entry(*rule).or_insert(0) += n;
        }
        out
    }
}
