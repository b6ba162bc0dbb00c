use egg::Id;

use super::analysis::EGraph;
use super::extract::{Extraction, PricedNode};
use super::language::{Head, Node};
use super::order::is_late;
use super::price::{AppliedOp, Machine, Prices};
use super::saturate::SkeletonGraph;
use super::skeleton::{Skeleton, Step};
use rustc_hash::FxHashMap;

/// Numbered e-classes, with their terms in a fixed order.
pub(super) struct EClasses<'a> {
    egraph: &'a EGraph,
    pub(super) ids: Vec<Id>,
    numbers: FxHashMap<Id, usize>,
    pub(super) nodes: Vec<Vec<&'a Node>>,
}

impl<'a> EClasses<'a> {
    pub(super) fn new(egraph: &'a EGraph) -> EClasses<'a> {
        let mut ids: Vec<Id> = egraph.classes().map(|c| c.id).collect();
        ids.sort_unstable();
        let numbers = ids.iter().enumerate().map(|(i, &id)| (id, i)).collect();
        let nodes = ids.iter().map(|&id| {
            let mut nodes: Vec<&Node> = egraph[id].nodes.iter().collect();
            nodes.sort_unstable();
            nodes
        });
        EClasses {
            egraph,
            nodes: nodes.collect(),
            ids,
            numbers,
        }
    }

    pub(super) fn at(&self, id: Id) -> usize {
        self.numbers[&self.egraph.find(id)]
    }
}

pub(super) fn extraction(
    skeleton: &Skeleton,
    graph: &SkeletonGraph,
    classes: &EClasses<'_>,
    machine: Machine<'_>,
) -> Extraction {
    let prices = Prices::new(machine, &graph.egraph.analysis);
    let priced = |node: &&Node| price_node(node, skeleton, classes, &prices);
    let nodes = classes.nodes.iter();
    let roots = skeleton.roots.iter();
    Extraction {
        nodes: nodes.map(|n| n.iter().map(priced).collect()).collect(),
        roots: roots
            .map(|&r| classes.at(graph.values[r as usize]))
            .collect(),
        known: section_terms(skeleton, graph, classes),
    }
}

fn price_node(
    node: &Node,
    skeleton: &Skeleton,
    classes: &EClasses<'_>,
    prices: &Prices<'_>,
) -> PricedNode {
    let egraph = classes.egraph;
    let mut out = PricedNode {
        operands: node.operands.iter().map(|&o| classes.at(o)).collect(),
        us: 0.0,
        transfer: false,
        late: false,
    };
    let Head::Op(op, results) = node.head else {
        return out;
    };
    let is_input = |n: &Node| match n.head {
        Head::Leaf(i) => skeleton.leaves[i as usize].input,
        _ => false,
    };
    let operands = node.operands.iter();
    let op = egraph.analysis.op(op);
    out.transfer = op.is_transfer();
    let results_of = egraph.analysis.types(results);
    out.late = results_of.iter().any(|r| is_late(op, r));
    out.us = prices.us(&AppliedOp {
        op,
        operands: operands
            .clone()
            .map(|&o| egraph.analysis.ty(egraph[o].data.types))
            .collect(),
        results: results_of,
        of_input: operands
            .clone()
            .any(|&o| egraph[o].nodes.iter().any(is_input)),
    });
    out
}

/// Returns, per e-class, its first term in the section. These terms do not form a cycle.
fn section_terms(
    skeleton: &Skeleton,
    graph: &SkeletonGraph,
    classes: &EClasses<'_>,
) -> Vec<Option<usize>> {
    let egraph = &graph.egraph;
    let mut known = vec![None; classes.ids.len()];
    let mut note = |id: Id, head: Head| {
        let c = classes.at(id);
        let found = classes.nodes[c].iter().position(|n| n.head == head);
        known[c] = known[c].or(found);
    };
    for i in 0..skeleton.leaves.len() {
        let head = Head::Leaf(i as u32);
        let operands = Vec::new();
        if let Some(id) = egraph.lookup(Node { head, operands }) {
            note(id, head);
        }
    }
    let mut value = 0;
    for (step, id) in skeleton.steps.iter().zip(&graph.steps) {
        let (Step::Apply { op, types, .. }, Some(id)) = (step, *id) else {
            continue;
        };
        note(id, Head::Op(*op, *types));
        let results = egraph.analysis.types(*types).len();
        for i in 0..results {
            if results > 1 {
                note(graph.values[value + i], Head::Result(i as u32));
            }
        }
        value += results;
    }
    known
}
