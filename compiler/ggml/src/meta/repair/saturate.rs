//! Applies equations until no term is new, or up to a limit. Limits are counts, so results are the same on every
//! machine.

use std::collections::BTreeMap;

use egg::Id;

use super::analysis::Terms;
use super::equations::{Equation, Tree};
use super::language::Node;

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of rounds.
    pub rounds: usize,
    /// The maximum number of terms.
    pub terms: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            rounds: 12,
            terms: 4000,
        }
    }
}

/// The end of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// No equation adds a term.
    Saturated,
    /// The search reached the limit of rounds.
    Rounds(usize),
    /// The search reached the limit of terms.
    Terms(usize),
}

/// The statistics of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The end.
    pub stop: Stop,
    /// The final number of terms.
    pub terms: usize,
    /// The number of added equalities per equation.
    pub applied: BTreeMap<&'static str, usize>,
}

pub(super) fn saturate(terms: &mut Terms, rules: &[&'static Equation], limits: Limits) -> Search {
    let mut applied = BTreeMap::new();
    let mut stop = Stop::Rounds(limits.rounds);
    terms.rebuild();
    for _ in 0..limits.rounds {
        let found = matches(terms, rules);
        let mut news = false;
        let mut full = false;
        for (rule, class, tree) in found {
            if terms.total_number_of_nodes() > limits.terms {
                full = true;
                break;
            }
            let id = tree.add(terms);
            if terms.union(class, id) {
                news = true;
                *applied.entry(rule).or_insert(0) += 1;
            }
        }
        terms.rebuild();
        if full {
            stop = Stop::Terms(limits.terms);
            break;
        }
        if !news {
            stop = Stop::Saturated;
            break;
        }
    }
    Search {
        stop,
        terms: terms.total_number_of_nodes(),
        applied,
    }
}

/// Returns the classes in the order of their ids. Each has its terms, sorted.
pub(super) fn in_order(terms: &Terms) -> Vec<(Id, Vec<&Node>)> {
    let mut out: Vec<(Id, Vec<&Node>)> = terms
        .classes()
        .map(|class| {
            let mut nodes: Vec<&Node> = class.nodes.iter().collect();
            nodes.sort_unstable();
            (class.id, nodes)
        })
        .collect();
    out.sort_unstable_by_key(|(id, _)| *id);
    out
}

fn matches(terms: &Terms, rules: &[&'static Equation]) -> Vec<(&'static str, Id, Tree)> {
    let mut out = Vec::new();
    let mut trees = Vec::new();
    for (class, nodes) in in_order(terms) {
        for node in nodes {
            for rule in rules {
                rule.rewrite(terms, node, &mut trees);
                out.extend(trees.drain(..).map(|t| (rule.name, class, t)));
            }
        }
    }
    out
}
