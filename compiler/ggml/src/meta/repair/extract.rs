//! Extracts the cheapest terms that ggml accepts. A shared term counts once.

use std::collections::BTreeMap;

use egg::{Id, Language};

use super::analysis::{Engine, Form, Terms};
use super::language::{Node, Op};
use super::saturate::in_order;
use crate::meta::states::SplitState;
use crate::op::GgmlOp;

pub(super) type ClassForm = (Id, Form);

#[derive(Clone, Debug)]
pub(super) struct Choice {
    pub(super) node: Node,
    pub(super) children: Vec<ClassForm>,
    /// The classes and forms that the term needs, with their prices. The term itself is included.
    needs: BTreeMap<ClassForm, u64>,
    cost: u64,
}

pub(super) struct Choices(BTreeMap<ClassForm, Choice>);

const MAX_ROUNDS: usize = 200;

/// The price of a changed line. It exceeds the price of the views that the change could save.
const CHANGE: u64 = 8;

/// Returns the price of a term without its children. Views are cheapest; a partial sum costs a reduction.
fn price(terms: &Terms, node: &Node, form: &Form) -> u64 {
    let facts = |id: Id| &terms[id].data;
    let work = |ne: [u64; 4]| 8 + ne.iter().product::<u64>();
    let times = u64::saturating_mul;
    let own = match &node.op {
        Op::Leaf { .. } => return 0,
        Op::Reshape(_) | Op::Permute(_) | Op::Slice { .. } | Op::View { .. } => 1,
        Op::Cont(ne) => work(*ne),
        Op::Effect { compute: c, .. } => work(c.ne),
        Op::Compute(c) => match (&c.op, node.children.first()) {
            (GgmlOp::MulMat(_) | GgmlOp::MulMatId(_), Some(&w)) => {
                times(work(c.ne), 1 + facts(w).ne[0])
            }
            _ => work(c.ne),
        },
    };
    let reduced = match form.state {
        SplitState::Partial => times(4, work(terms_ne(terms, node))),
        _ => 0,
    };
    own.saturating_add(reduced)
}

fn terms_ne(terms: &Terms, node: &Node) -> [u64; 4] {
    terms
        .lookup(node.clone())
        .map_or([1; 4], |id| terms[id].data.ne)
}

impl Choices {
    pub(super) fn cheapest(terms: &Terms, originals: &BTreeMap<Node, usize>) -> Choices {
        let classes = in_order(terms);
        let mut best: BTreeMap<ClassForm, Choice> = BTreeMap::new();
        for _ in 0..MAX_ROUNDS {
            let mut news = false;
            for (id, nodes) in &classes {
                for node in nodes {
                    news |= improve(terms, originals, &mut best, *id, node);
                }
            }
            if !news {
                break;
            }
        }
        Choices(best)
    }

    pub(super) fn get(&self, held: &ClassForm) -> Option<&Choice> {
        self.0.get(held)
    }

    pub(super) fn with_strides(&self, id: Id, nb: [u64; 4]) -> Option<ClassForm> {
        let of_class = self
            .0
            .iter()
            .filter(|((class, form), _)| *class == id && form.nb == nb);
        of_class
            .min_by_key(|(_, c)| c.cost)
            .map(|(held, _)| held.clone())
    }
}

/// Records the choices of a term that are cheaper than the known choices. Returns true if a choice improved.
fn improve(
    terms: &Terms,
    originals: &BTreeMap<Node, usize>,
    best: &mut BTreeMap<ClassForm, Choice>,
    id: Id,
    node: &Node,
) -> bool {
    let mut news = false;
    // A leaf is not a line of the window.
    let is_new = !originals.contains_key(node) && !matches!(node.op, Op::Leaf { .. });
    let change = if is_new { CHANGE } else { 0 };
    for forms in Engine::combinations(terms, node) {
        let children: Vec<ClassForm> = node
            .children()
            .iter()
            .zip(&forms)
            .map(|(&c, &f)| (c, f.clone()))
            .collect();
        let known: Option<Vec<&Choice>> = children.iter().map(|c| best.get(c)).collect();
        let Some(known) = known else { continue };
        let Some(form) = Engine::form(terms, node, &forms) else {
            continue;
        };
        let held = (id, form);
        if known.iter().any(|c| c.needs.contains_key(&held)) {
            continue;
        }
        let mut needs = BTreeMap::new();
        for c in &known {
            needs.extend(c.needs.iter().map(|(k, v)| (k.clone(), *v)));
        }
        let own = price(terms, node, &held.1).saturating_add(change);
        needs.insert(held.clone(), own);
        let cost = needs.values().fold(0, |a: u64, b| a.saturating_add(*b));
        if best.get(&held).is_none_or(|b| cost < b.cost) {
            let node = node.clone();
            news = true;
            best.insert(
                held,
                Choice {
                    node,
                    children,
                    needs,
                    cost,
                },
            );
        }
    }
    news
}
