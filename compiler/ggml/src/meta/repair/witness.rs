//! Witnesses: graphs with all terms that the equations derive. Running a witness checks the equations.

use std::collections::BTreeMap;

use egg::Id;

use super::analysis::Terms;
use super::emit::Maker;
use super::equations::Equation;
use super::language::{Node, Op};
use super::saturate::{Limits, Search, in_order, saturate};
use super::window::Window;
use crate::capture::Record;
use crate::meta::infer::{Setup, infer};

/// Returns a capture that computes every term of every class. The results `CLASS.N` of one class must be equal.
pub fn witness(
    records: &[Record],
    setup: &Setup,
    rules: &[&'static Equation],
    limits: Limits,
) -> (Vec<Record>, Search) {
    let inference = infer(records, setup);
    let mut window = Window::new(records, 0..records.len(), &inference);
    let search = saturate(&mut window.terms, rules, limits);
    let mut maker = Maker::new(records);
    let simplest = simplest(&window.terms);
    let mut packed = BTreeMap::new();
    for id in depth_first(&window.terms, &simplest) {
        let at = record_of(&mut maker, &window.terms, &packed, id, &simplest[&id]);
        let at = maker.ensure_packed(&window.terms, id, at, "");
        packed.insert(id, at);
    }
    for (id, nodes) in in_order(&window.terms) {
        for (n, node) in nodes.into_iter().enumerate() {
            if matches!(node.op, Op::Leaf { .. }) || !packed.contains_key(&id) {
                continue;
            }
            let at = record_of(&mut maker, &window.terms, &packed, id, node);
            let name = format!("{id}.{n}");
            maker.ensure_packed(&window.terms, id, at, &name);
        }
    }
    (maker.records, search)
}

fn record_of(
    maker: &mut Maker<'_>,
    terms: &Terms,
    packed: &BTreeMap<Id, usize>,
    id: Id,
    node: &Node,
) -> usize {
    let src: Vec<usize> = node
        .children
        .iter()
        .map(|c| packed[&terms.find(*c)])
        .collect();
    maker.term(terms, id, &node.op, &src)
}

fn simplest(terms: &Terms) -> BTreeMap<Id, Node> {
    let mut depth: BTreeMap<Id, usize> = BTreeMap::new();
    let mut out = BTreeMap::new();
    loop {
        let before = out.len();
        for (id, nodes) in in_order(terms) {
            let of = |n: &Node| n.children.iter().map(|c| depth.get(&terms.find(*c))).max();
            let known = nodes.into_iter().filter_map(|n| match of(n) {
                None => Some((0, n)),
                Some(d)
                    if n.children
                        .iter()
                        .all(|c| depth.contains_key(&terms.find(*c))) =>
                {
                    d.map(|d| (d + 1, n))
                }
                Some(_) => None,
            });
            if !depth.contains_key(&id)
                && let Some((d, node)) = known.min()
            {
                depth.insert(id, d);
                out.insert(id, node.clone());
            }
        }
        if out.len() == before {
            return out;
        }
    }
}

/// Returns the classes, each after the classes of its simplest term.
fn depth_first(terms: &Terms, simplest: &BTreeMap<Id, Node>) -> Vec<Id> {
    let mut out: Vec<Id> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut stack: Vec<(Id, bool)> = simplest.keys().rev().map(|id| (*id, false)).collect();
    while let Some((id, ready)) = stack.pop() {
        if ready {
            out.push(id);
        } else if seen.insert(id) {
            stack.push((id, true));
            stack.extend(
                simplest[&id]
                    .children
                    .iter()
                    .map(|c| (terms.find(*c), false)),
            );
        }
    }
    out
}
