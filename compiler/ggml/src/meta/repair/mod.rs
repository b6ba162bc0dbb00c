//! Repairs: searches for a graph that ggml accepts and that equals the refused graph.
//!
//! A *window* of records around the refused op becomes an e-graph of terms (`window`, `language`). The `equations` of
//! ggml's ops add equal terms, until no term is new or a limit is reached (`saturate`). `analysis` tracks the states
//! and strides that each class can have in ggml. `extract` chooses the cheapest accepted terms, and `emit` replaces
//! the window. Then the next refused op is repaired. The equations are independent of ggml's rules and of specific
//! graphs.

mod analysis;
mod diff;
mod emit;
mod equations;
mod extract;
mod language;
mod saturate;
mod sizes;
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

/// A change that makes ggml accept a refused op.
#[derive(Clone, Debug)]
pub struct Repair {
    /// The fault of the op.
    pub fault: Fault,
    /// The record of the op.
    pub record: Record,
    /// The removed and added lines.
    pub diff: String,
    /// The search that found the change.
    pub search: Search,
}

/// A graph with all repairs.
#[derive(Clone, Debug)]
pub struct RepairedGraph {
    /// The repairs, in order.
    pub repairs: Vec<Repair>,
    /// The graph.
    pub records: Vec<Record>,
    /// The states and faults of the graph.
    pub inference: Inference,
    /// The last search, if it failed.
    pub failed: Option<Search>,
}

/// The window sizes to try: records before and after the refused record.
const REACHES: [usize; 4] = [6, 12, 24, 48];

/// Repairs a graph, one refused op after another.
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
    while let Some((at, fault)) = refused_record(&out.inference) {
        let mut last = None;
        let mut found = None;
        for reach in REACHES {
            let (splice, search) =
                search_window(&out.records, &out.inference, at, reach, rules, limits);
            last = Some(search.clone());
            let Some(s) = splice else { continue };
            let inference = infer(&s.records, setup);
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

fn refused_record(inference: &Inference) -> Option<(usize, Fault)> {
    let fault = inference.refused()?;
    Some((fault.record?, fault.clone()))
}

fn search_window(
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
    let choices = Choices::cheapest(&window.terms, &originals);
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
