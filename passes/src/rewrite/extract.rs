//! Extraction: chooses one term per e-class so that the *graph* is cheapest. A graph pays once for a value used twice.
//!
//! Finding the cheapest graph is hard in general, and the sum over a tree overflows if residuals are added layer by
//! layer. Each e-class therefore keeps the set of e-classes that its choice needs, and pays for each once. This handles
//! operands of one term that share e-classes. For sharing among different users, trials treat each transfer in turn as
//! paid for or as forbidden. A trial's choice is kept if its graph is cheaper.

use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::DfsPostOrder;
use tpc_ir::random::SplitMix64;

#[derive(Clone, Debug)]
pub(super) struct PricedNode {
    pub(super) operands: Vec<usize>,
    /// The price, in µs per generated token.
    pub(super) us: f64,
    pub(super) transfer: bool,
    pub(super) late: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Extraction {
    pub(super) nodes: Vec<Vec<PricedNode>>,
    pub(super) roots: Vec<usize>,
    /// A term per needed e-class; together they make an acyclic graph.
    pub(super) known: Vec<Option<usize>>,
}

/// The minimum price of a term, so that of two equally cheap graphs, the smaller wins.
const LEAST: f64 = 1e-6;
/// A price above every graph's, in µs.
const PROHIBITIVE: f64 = 1e15;
const PASSES: usize = 16;
const ROUNDS: usize = 4;
/// The number of e-class visits after which no trial begins; they take some tenths of a second. Sections of tpc's own
/// models take fewer than a million; most captures take fewer than 50.
const WORK: u64 = 200_000_000;

type BitSet = Vec<u64>;

pub(super) type Choice = Vec<Option<usize>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Trial {
    Paid,
    Forbidden,
}

impl Extraction {
    pub(super) fn shuffle(&mut self, seed: u64) {
        let mut random = SplitMix64::new(seed);
        for term in self.nodes.iter_mut().flatten() {
            term.us = (random.next_u64() >> 40) as f64;
        }
    }

    pub(super) fn without_late(&self) -> Extraction {
        let mut out = self.clone();
        for term in out.nodes.iter_mut().flatten().filter(|t| t.late) {
            term.us += PROHIBITIVE;
        }
        out
    }

    pub(super) fn is_late(&self, chosen: &Choice) -> bool {
        let late = |c: usize| chosen[c].is_some_and(|t| self.nodes[c][t].late);
        let needed = self.reachable_classes(chosen);
        needed.is_some_and(|needed| needed.into_iter().any(late))
    }

    pub(super) fn cheapest(&self) -> Choice {
        let mut best = self.known.clone();
        let mut cost = self.cost(&best).unwrap_or(f64::INFINITY);
        let order = self.order();
        let mut consider = |chosen: Choice, best: &mut Choice| {
            let better = self.cost(&chosen).filter(|c| *c < cost * (1.0 - 1e-9));
            if let Some(c) = better {
                cost = c;
                *best = chosen;
            }
            better.is_some()
        };
        let mut work = 0;
        consider(self.greedy(&order, None, &mut work), &mut best);
        let transfers: Vec<(usize, usize)> = (0..self.nodes.len())
            .flat_map(|c| (0..self.nodes[c].len()).map(move |t| (c, t)))
            .filter(|&(c, t)| self.nodes[c][t].transfer)
            .collect();
        for _ in 0..ROUNDS {
            let mut improved = false;
            for &at in &transfers {
                if work > WORK {
                    break;
                }
                let needed = self
                    .reachable_classes(&best)
                    .is_some_and(|n| n.contains(&at.0));
                let trial = if needed && best[at.0] == Some(at.1) {
                    Trial::Forbidden
                } else {
                    Trial::Paid
                };
                improved |= consider(self.greedy(&order, Some((at, trial)), &mut work), &mut best);
            }
            if !improved {
                break;
            }
        }
        best
    }

    /// Returns the e-classes, mostly operands first.
    fn order(&self) -> Vec<usize> {
        let mut graph = self.empty_graph();
        for (c, terms) in self.nodes.iter().enumerate() {
            for &operand in terms.iter().flat_map(|t| &t.operands) {
                graph.add_edge(NodeIndex::new(c), NodeIndex::new(operand), ());
            }
        }
        self.post_order(&graph)
    }

    fn empty_graph(&self) -> DiGraph<(), ()> {
        let mut graph = DiGraph::with_capacity(self.nodes.len(), self.nodes.len());
        for _ in &self.nodes {
            graph.add_node(());
        }
        graph
    }

    fn post_order(&self, graph: &DiGraph<(), ()>) -> Vec<usize> {
        let mut search = DfsPostOrder::empty(graph);
        let mut out = Vec::with_capacity(self.nodes.len());
        for &root in &self.roots {
            search.move_to(NodeIndex::new(root));
            while let Some(node) = search.next(graph) {
                out.push(node.index());
            }
        }
        out
    }

    /// Returns the cheapest terms, with one term's price changed by `trial`. Adds the number of visited e-classes to
    /// `work`.
    fn greedy(
        &self,
        order: &[usize],
        trial: Option<((usize, usize), Trial)>,
        work: &mut u64,
    ) -> Choice {
        let words = self.nodes.len().div_ceil(64);
        let price = |c: usize, t: usize| match trial {
            Some((at, Trial::Forbidden)) if at == (c, t) => None,
            Some((at, Trial::Paid)) if at == (c, t) => Some(LEAST),
            _ => Some(self.nodes[c][t].us + LEAST),
        };
        let mut sets: Vec<Option<BitSet>> = vec![None; self.nodes.len()];
        let mut own = vec![0.0; self.nodes.len()];
        let mut chosen: Choice = vec![None; self.nodes.len()];
        // The e-classes needed by the best term so far, and by the current term.
        let (mut of_best, mut set) = (vec![0; words], vec![0; words]);
        for _ in 0..PASSES {
            let mut changed = false;
            for &c in order {
                let mut best: Option<(f64, usize)> = None;
                for (t, term) in self.nodes[c].iter().enumerate() {
                    let Some(us) = price(c, t) else { continue };
                    set.fill(0);
                    let known = term.operands.iter().all(|&o| match &sets[o] {
                        Some(s) => {
                            set.iter_mut().zip(s).for_each(|(a, b)| *a |= b);
                            true
                        }
                        None => false,
                    });
                    if !known || contains(&set, c) {
                        continue;
                    }
                    let needs: f64 = members(&set).map(|k| own[k]).sum();
                    let looked_at: u32 = set.iter().map(|word| word.count_ones()).sum();
                    *work += words as u64 + u64::from(looked_at);
                    if best.is_none_or(|(b, _)| us + needs < b) {
                        best = Some((us + needs, t));
                        std::mem::swap(&mut of_best, &mut set);
                    }
                }
                let Some((_, t)) = best else { continue };
                of_best[c / 64] |= 1 << (c % 64);
                if chosen[c] == Some(t) && sets[c].as_ref() == Some(&of_best) {
                    continue;
                }
                changed = true;
                chosen[c] = Some(t);
                own[c] = price(c, t).unwrap_or(LEAST);
                sets[c].get_or_insert_default().clone_from(&of_best);
            }
            if !changed {
                break;
            }
        }
        chosen
    }

    /// Returns the total price of all needed e-classes; `None` if the choice has a cycle or a gap.
    pub(super) fn cost(&self, chosen: &Choice) -> Option<f64> {
        let order = self.reachable_classes(chosen)?;
        let price = |&c: &usize| Some(self.nodes[c][chosen[c]?].us + LEAST);
        order.iter().map(price).sum()
    }

    /// Returns the needed e-classes, operands first.
    pub(super) fn reachable_classes(&self, chosen: &Choice) -> Option<Vec<usize>> {
        let operands = |c: usize| chosen[c].map(|t| self.nodes[c][t].operands.as_slice());
        let mut graph = self.empty_graph();
        for c in 0..self.nodes.len() {
            for &operand in operands(c).unwrap_or_default() {
                graph.add_edge(NodeIndex::new(c), NodeIndex::new(operand), ());
            }
        }
        let order = self.post_order(&graph);
        let mut is_before = vec![false; self.nodes.len()];
        for &c in &order {
            // In postorder, only operands on a cycle come later.
            if !operands(c)?.iter().all(|&o| is_before[o]) {
                return None;
            }
            is_before[c] = true;
        }
        Some(order)
    }
}

fn contains(set: &BitSet, c: usize) -> bool {
    set[c / 64] >> (c % 64) & 1 == 1
}

fn members(set: &BitSet) -> impl Iterator<Item = usize> + '_ {
    set.iter().enumerate().flat_map(|(i, &word)| {
        let mut word = word;
        std::iter::from_fn(move || {
            let bit = (word != 0).then(|| word.trailing_zeros() as usize)?;
            word &= word - 1;
            Some(i * 64 + bit)
        })
    })
}
