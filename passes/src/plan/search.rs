//! Searches the sets of compatible options of one problem: exact for few assignments, otherwise component by component.

use petgraph::unionfind::UnionFind;
use tpc_ir::{Budget, Inst, Resource};

use super::components::components;
use super::layer_group::LayerGroup;
use super::options::{SplitOption, clash};
use super::price::{Price, Pricer};

/// The maximum number of assignments of an exact search.
const EXACT_LIMIT: usize = 1000;
const PART_LIMIT: usize = 64;
const MOST_OPTIONS: usize = 512;
const ROUNDS: usize = 3;

pub(super) struct CheapestAssignment<'b> {
    pub(super) price: Price,
    pub(super) assignment: Vec<&'b SplitOption>,
    pub(super) priced: u64,
    pub(super) optimal: bool,
}

/// Returns up to `limit` sets of pairwise compatible `items`, the empty set first; true if the list is complete.
pub(super) fn assignments(
    items: &[usize],
    limit: usize,
    conflict: &dyn Fn(usize, usize) -> bool,
) -> (Vec<Vec<usize>>, bool) {
    let mut out: Vec<Vec<usize>> = vec![Vec::new()];
    let mut i = 0;
    while i < out.len() {
        let from = out[i].last().map_or(0, |&l| l + 1);
        for next in from..items.len() {
            if out[i].iter().all(|&o| !conflict(items[o], items[next])) {
                if out.len() >= limit {
                    return (out, false);
                }
                let mut set = out[i].clone();
                set.push(next);
                out.push(set);
            }
        }
        i += 1;
    }
    (out, true)
}

/// Finds the cheapest assignment with the `fixed` options. Returns `None` if not even the `fixed` options alone are
/// possible.
pub(super) fn search<'b>(
    pricer: &Pricer<'_>,
    group: &LayerGroup,
    fixed: &[&'b SplitOption],
    options: &[&'b SplitOption],
    budget: &Budget,
) -> Option<CheapestAssignment<'b>> {
    let all_options = options.len();
    let options = &options[..all_options.min(MOST_OPTIONS)];
    let mut trials = Trials {
        pricer,
        group,
        fixed,
        options,
        conflicts: conflicts(pricer, options),
        weight: weight(pricer, group),
        budget,
        priced: 0,
        best: None,
    };
    let all: Vec<usize> = (0..options.len()).collect();
    let (sets, complete) = assignments(&all, EXACT_LIMIT, &|a, b| trials.conflict(a, b));
    if complete {
        for set in sets {
            trials.price(set);
        }
    } else {
        trials.improve_by_component();
    }
    let complete = complete && !trials.is_exhausted() && options.len() == all_options;
    let (price, set) = trials.best?;
    Some(CheapestAssignment {
        price,
        assignment: set.into_iter().map(|i| options[i]).collect(),
        priced: trials.priced,
        optimal: complete,
    })
}

fn conflicts(pricer: &Pricer<'_>, options: &[&SplitOption]) -> Vec<bool> {
    let analysis = pricer.facts.analysis;
    let n = options.len();
    (0..n * n)
        .map(|i| (i / n, i % n))
        .map(|(a, b)| a != b && clash(analysis, options[a], options[b]))
        .collect()
}

/// Returns the number of summands of all operands and results, times devices.
fn weight(pricer: &Pricer<'_>, group: &LayerGroup) -> u64 {
    let summands = |&i: &Inst| {
        let data = pricer.facts.graph.inst(i);
        let values = data.operands.iter().chain(&data.results);
        let summands = values.map(|v| pricer.facts.analysis.summands[v.index()].len());
        1 + summands.sum::<usize>()
    };
    let all: usize = group.insts.iter().map(summands).sum();
    all as u64 * pricer.device_weights.len() as u64
}

struct Trials<'a, 'b> {
    pricer: &'a Pricer<'a>,
    group: &'a LayerGroup,
    fixed: &'a [&'b SplitOption],
    options: &'a [&'b SplitOption],
    conflicts: Vec<bool>,
    weight: u64,
    budget: &'a Budget,
    priced: u64,
    /// The best assignment, as positions in `options`.
    best: Option<(Price, Vec<usize>)>,
}

impl Trials<'_, '_> {
    fn is_exhausted(&self) -> bool {
        self.budget.remaining(Resource::Trials) == 0
    }

    fn conflict(&self, a: usize, b: usize) -> bool {
        self.conflicts[a * self.options.len() + b]
    }

    /// Prices an assignment; keeps it if it is cheaper than the best by more than rounding.
    fn price(&mut self, set: Vec<usize>) {
        if !self.budget.take(Resource::Trials, self.weight) && self.best.is_some() {
            return;
        }
        self.priced += 1;
        let own = set.iter().map(|&i| self.options[i]);
        let all: Vec<&SplitOption> = self.fixed.iter().copied().chain(own).collect();
        let Some(price) = self.pricer.price(self.group, &all) else {
            return;
        };
        let cheaper = |(b, _): &(Price, _)| price.objective < b.objective * (1.0 - 1e-9);
        if self.best.as_ref().is_none_or(cheaper) {
            self.best = Some((price, set));
        }
    }

    fn improve_by_component(&mut self) {
        self.price(Vec::new());
        let parts = connected_components(self.options.len(), &|a, b| self.conflict(a, b));
        for _ in 0..ROUNDS {
            if self.is_exhausted() {
                break;
            }
            let before = self.best.as_ref().map(|(_, set)| set.clone());
            parts.iter().for_each(|part| self.improve(part));
            if before == self.best.as_ref().map(|(_, set)| set.clone()) {
                break;
            }
        }
    }

    /// Tries every assignment of one component.
    fn improve(&mut self, part: &[usize]) {
        let (sets, _) = assignments(part, PART_LIMIT, &|a, b| self.conflict(a, b));
        let best = self.best.iter().flat_map(|(_, set)| set.iter().copied());
        let rest: Vec<usize> = best.filter(|i| !part.contains(i)).collect();
        for set in sets {
            let own = set.iter().map(|&i| part[i]);
            let mut set: Vec<usize> = own.chain(rest.iter().copied()).collect();
            set.sort_unstable();
            self.price(set);
        }
    }
}

fn connected_components(n: usize, conflict: &dyn Fn(usize, usize) -> bool) -> Vec<Vec<usize>> {
    let mut sets = UnionFind::new(n);
    for a in 0..n {
        for b in a + 1..n {
            if !sets.equiv(a, b) && conflict(a, b) {
                sets.union(a, b);
            }
        }
    }
    components(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_parts() {
        // 0 excludes 1; 2 is compatible with both.
        let conflict = |a: usize, b: usize| a + b == 1;
        let (sets, complete) = assignments(&[0, 1, 2], 100, &conflict);
        assert!(complete);
        assert_eq!(
            sets,
            [vec![], vec![0], vec![1], vec![2], vec![0, 2], vec![1, 2]]
        );
        assert!(!assignments(&[0, 1, 2], 3, &conflict).1);
        assert_eq!(connected_components(3, &conflict), [vec![0, 1], vec![2]]);
    }
}
