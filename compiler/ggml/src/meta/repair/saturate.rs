//! Applies the laws until nothing new follows, or a limit of counts is reached. Time plays no part.

use std::collections::BTreeMap;

use egg::Id;

use super::analysis::Terms;
use super::equations::{Equation, Tree};
use super::language::Node;

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rounds.
    pub rounds: usize,
    /// Terms.
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

/// Why it stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing new follows.
    Saturated,
    /// So many rounds.
    Rounds(usize),
    /// So many terms.
    Terms(usize),
}

impl std::fmt::Display for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Stop::Saturated => f.write_str("nothing more follows"),
            Stop::Rounds(n) => write!(f, "stopped after {n} rounds"),
            Stop::Terms(n) => write!(f, "stopped at {n} terms"),
        }
    }
}

/// How a search went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Why it stopped.
    pub stop: Stop,
    /// Terms in the end.
    pub terms: usize,
    /// Per law, how often it said something new.
    pub applied: BTreeMap<&'static str, usize>,
}

/// Saturates.
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

/// The classes in order, each with its terms in order.
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
