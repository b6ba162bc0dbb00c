//! An equivalent graph that the engine takes.
//!
//! Around the op that is refused, a stretch of the capture becomes an e-graph of terms (`window`, `language`). The laws
//! of ggml's ops (`equations`) say which terms are equal; of every class of equal terms it is known how the engine would
//! hold it (`analysis`). When nothing more follows, or a count is reached (`saturate`), the cheapest terms of which the
//! engine takes every op are chosen (`extract`) and put in place of the stretch (`emit`). Then the whole graph is judged
//! again; what is refused next is repaired next. No law speaks of the engine, and no form of a graph is looked for: what is
//! found follows.

mod analysis;
mod diff;
mod emit;
mod equations;
mod extract;
mod language;
mod saturate;
mod window;
mod witness;

pub use equations::{EQUATIONS, Equation};
pub use saturate::{Limits, Search, Stop};
pub use witness::witness;

use std::collections::BTreeMap;

use super::infer::{Fault, Inference, Setup, infer};
use crate::capture::Record;
use emit::Splice;
use extract::{Choices, ClassForm};
use language::Node;
use window::Window;

/// A change that makes the engine take an op that it refused.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What was refused.
    pub fault: Fault,
    /// The op that was.
    pub record: Record,
    /// The lines that go and come.
    pub diff: String,
    /// How the search went.
    pub search: Search,
}

/// What came of looking for an equivalent.
#[derive(Clone, Debug)]
pub struct RepairedGraph {
    /// The changes, in order.
    pub repairs: Vec<Repair>,
    /// The graph with all of them.
    pub records: Vec<Record>,
    /// What the engine makes of it.
    pub inference: Inference,
    /// Where the next op is refused and no equivalent was found: how the last search went.
    pub failed: Option<Search>,
}

/// Records before and after the refused one that are looked at, one after another.
const REACHES: [usize; 4] = [6, 12, 24, 48];

/// Looks for equivalents of what the engine refuses in a graph, by these laws.
pub fn repair(
    records: &[Record],
    setup: &Setup,
    rules: &[&'static Equation],
    limits: Limits,
) -> RepairedGraph {
    let mut out = RepairedGraph {
        repairs: Vec::new(),
        records: records.to_vec(),
        inference: infer(records, setup),
        failed: None,
    };
    while let Some((at, fault)) = refused(&out.inference) {
        let mut last = None;
        let mut found = None;
        for reach in REACHES {
            let (splice, search) = stretch(&out.records, &out.inference, at, reach, rules, limits);
            last = Some(search.clone());
            let Some(s) = splice else { continue };
            let inference = infer(&s.records, setup);
            // Everything up to the refused record is taken now.
            let next = inference.refused().and_then(|f| f.record);
            let behind = s.place[at..].iter().flatten().min().copied();
            if next.is_none_or(|n| behind.is_some_and(|b| n > b)) {
                found = Some((s, inference, search));
                break;
            }
        }
        let Some((s, inference, search)) = found else {
            out.failed = last;
            break;
        };
        out.repairs.push(Repair {
            record: out.records[at].clone(),
            fault,
            diff: diff::diff(&out.records, &s.records),
            search,
        });
        out.records = s.records;
        out.inference = inference;
    }
    out
}

/// The record that is refused.
fn refused(inference: &Inference) -> Option<(usize, Fault)> {
    let fault = inference.refused()?;
    Some((fault.record?, fault.clone()))
}

/// Looks for an equivalent of the records around one.
fn stretch(
    records: &[Record],
    inference: &Inference,
    at: usize,
    reach: usize,
    rules: &[&'static Equation],
    limits: Limits,
) -> (Option<Splice>, Search) {
    let range = at.saturating_sub(reach)..(at + reach + 1).min(records.len());
    let mut window = Window::new(records, range, inference);
    let search = saturate::saturate(&mut window.terms, rules, limits);
    let mut originals: BTreeMap<Node, usize> = BTreeMap::new();
    for (i, node) in &window.original {
        let mut node = node.clone();
        node.children
            .iter_mut()
            .for_each(|c| *c = window.terms.find(*c));
        originals.entry(node).or_insert(*i);
    }
    let choices = Choices::of(&window.terms, &originals);
    let held = |i: &usize| -> Option<(usize, ClassForm)> {
        let id = window.terms.find(window.class[i]);
        choices
            .with_strides(id, records[*i].layout.nb)
            .map(|held| (*i, held))
    };
    let roots: Option<BTreeMap<usize, ClassForm>> = window.roots.iter().map(held).collect();
    let splice = roots.and_then(|r| emit::splice(records, &window, &choices, &originals, &r));
    (splice, search)
}
