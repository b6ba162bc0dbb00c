use std::collections::BTreeMap;

use tpc_ir::factor::Var;
use tpc_ir::{Class, Group};

use super::options::SplitOption;
use crate::factors::Selection;

/// The chosen options.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The options. An option's position is its class.
    pub options: Vec<SplitOption>,
    by_leaf: BTreeMap<(Group, Var), Class>,
    /// The number of priced assignments.
    pub priced: u64,
    /// True if every assignment was priced. The choice is then the cheapest by the cost model.
    pub optimal: bool,
    /// The number of distinct problems.
    pub distinct: usize,
    /// The choice's price in µs per token, with capped collectives.
    pub cost: f64,
    /// A lower bound on the price of every assignment; equal to [`Self::cost`] if all were priced.
    pub lower_bound: f64,
}

impl Choice {
    /// Returns the choice without splits.
    pub fn none() -> Choice {
        Choice {
            optimal: true,
            distinct: 1,
            ..Choice::default()
        }
    }

    /// Returns the maximum excess over the cheapest assignment, as a fraction; 0 if optimal.
    pub fn excess(&self) -> f64 {
        if self.optimal || self.lower_bound <= 0.0 {
            return 0.0;
        }
        (self.cost / self.lower_bound - 1.0).max(0.0)
    }

    /// Returns the choice of these options. Of options that share a leaf, only the first is chosen.
    pub fn from_options(options: impl IntoIterator<Item = SplitOption>) -> Choice {
        let mut out = Choice::none();
        options.into_iter().for_each(|o| out.push(o));
        out
    }

    pub(super) fn join(&mut self, other: Choice) {
        other.options.into_iter().for_each(|o| self.push(o));
        self.priced += other.priced;
        self.optimal &= other.optimal;
        self.distinct += other.distinct;
        self.cost += other.cost;
        self.lower_bound += other.lower_bound;
    }

    pub(super) fn push(&mut self, option: SplitOption) {
        let taken = |l: &Var| self.by_leaf.contains_key(&(option.group, *l));
        if option.leaves.iter().any(taken) {
            return;
        }
        let class = Class::new(self.options.len());
        for &l in &option.leaves {
            self.by_leaf.insert((option.group, l), class);
        }
        self.options.push(option);
    }
}

impl Selection for Choice {
    fn class_of(&self, group: Group, leaf: Var) -> Option<Class> {
        self.by_leaf.get(&(group, leaf)).copied()
    }
}
