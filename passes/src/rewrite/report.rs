use std::collections::BTreeMap;

use tpc_ir::op::{Collective, OpCategory};
use tpc_ir::program::SumOrder;
use tpc_ir::{Budget, Op, Resource};

/// Limits on the saturation of a section, and the choice among equal graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of rounds.
    pub iterations: usize,
    /// The maximum number of terms.
    pub nodes: usize,
    /// The maximum number of terms of all sections together; further sections stay unchanged.
    pub all_nodes: usize,
    /// A seed for random prices, for tests: every equal graph must be sound.
    pub seed: Option<u64>,
    /// The order of sums over devices.
    pub sums: SumOrder,
}

impl Default for Limits {
    /// Returns limits far above the needs of any architecture's layer.
    fn default() -> Limits {
        Limits {
            iterations: 200,
            nodes: 20_000,
            all_nodes: usize::MAX,
            seed: None,
            sums: SumOrder::default(),
        }
    }
}

impl Limits {
    /// Returns the default limits, with the budget's remaining terms as the limit for all sections.
    pub fn for_budget(budget: &Budget) -> Limits {
        Limits {
            all_nodes: usize::try_from(budget.remaining(Resource::Terms)).unwrap_or(usize::MAX),
            ..Limits::default()
        }
    }
}

/// The reason why saturation stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopReason {
    /// No rule finds new terms.
    #[default]
    Saturated,
    /// The limit of rounds was reached.
    Iterations,
    /// The limit of terms was reached.
    Nodes,
}

impl std::fmt::Display for StopReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            StopReason::Saturated => "saturated",
            StopReason::Iterations => "stopped at the limit of rounds",
            StopReason::Nodes => "stopped at the limit of terms",
        })
    }
}

/// The numbers of transfers.
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
    fn add(&mut self, op: &Op) {
        match op.category() {
            OpCategory::Collective(collective) => match collective {
                Collective::AllReduce => self.all_reduce += 1,
                Collective::AllGather => self.all_gather += 1,
                Collective::ReduceScatter => self.reduce_scatter += 1,
                Collective::AllToAll => self.all_to_all += 1,
            },
            OpCategory::Copy => self.copies += 1,
            _ => {}
        }
    }

    pub(super) fn count_transfers<'a>(ops: impl Iterator<Item = &'a Op>) -> Counts {
        let mut out = Counts::default();
        ops.for_each(|op| out.add(op));
        out
    }

    /// Returns the number of collectives.
    pub const fn collectives(&self) -> usize {
        self.all_reduce + self.all_gather + self.reduce_scatter + self.all_to_all
    }

    /// Returns the number of transfers.
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

#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    pub(super) nodes: usize,
    pub(super) classes: usize,
    pub(super) iterations: usize,
    pub(super) stop: StopReason,
    pub(super) matches: BTreeMap<&'static str, usize>,
    pub(super) before: Counts,
}

/// The report on the sections of one skeleton.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionReport {
    /// The first layer of each section; `None` before the first layer.
    pub layers: Vec<Option<u32>>,
    /// Final number of terms.
    pub nodes: usize,
    /// Final number of e-classes.
    pub classes: usize,
    /// Number of rounds.
    pub iterations: usize,
    /// The reason why saturation stopped.
    pub stop: StopReason,
    /// Number of equalities found, per rule.
    pub matches: BTreeMap<&'static str, usize>,
    /// Transfers of one section before rewriting.
    pub before: Counts,
    /// Transfers of one section after rewriting.
    pub after: Counts,
}

/// The report on a rewritten graph.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One report per skeleton, in order of appearance.
    pub sections: Vec<SectionReport>,
}

impl Report {
    pub(super) fn count(
        &mut self,
        (at, layer): (usize, Option<u32>),
        outcome: &Outcome,
        after: Counts,
    ) {
        if at == self.sections.len() {
            self.sections.push(SectionReport {
                layers: Vec::new(),
                nodes: outcome.nodes,
                classes: outcome.classes,
                iterations: outcome.iterations,
                stop: outcome.stop,
                matches: outcome.matches.clone(),
                before: outcome.before,
                after,
            });
        }
        self.sections[at].layers.push(layer);
    }

    fn sum(&self, of: impl Fn(&SectionReport) -> Counts) -> Counts {
        let mut out = Counts::default();
        for r in &self.sections {
            for _ in &r.layers {
                out.join(&of(r));
            }
        }
        out
    }

    /// Returns the number of terms of all distinct sections.
    pub fn nodes(&self) -> usize {
        self.sections.iter().map(|r| r.nodes).sum()
    }

    /// Returns the graph's transfers before rewriting.
    pub fn before(&self) -> Counts {
        self.sum(|r| r.before)
    }

    /// Returns the graph's transfers after rewriting.
    pub fn after(&self) -> Counts {
        self.sum(|r| r.after)
    }

    /// True if every section is saturated.
    pub fn is_saturated(&self) -> bool {
        self.sections
            .iter()
            .all(|r| r.stop == StopReason::Saturated)
    }

    /// Returns the number of equalities per rule, over all distinct sections.
    pub fn matches(&self) -> BTreeMap<&'static str, usize> {
        let mut out = BTreeMap::new();
        for (rule, n) in self.sections.iter().flat_map(|r| &r.matches) {
            *out.entry(*rule).or_insert(0) += n;
        }
        out
    }
}
