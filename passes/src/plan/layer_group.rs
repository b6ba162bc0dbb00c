//! Regions: what is planned as a unit, and which of them are alike.

use std::collections::BTreeMap;
use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Graph, Group, Inst, Op, Place, Value};

use crate::factors::{Analysis, Term};
use crate::layers::Prologue;

/// The instructions of one layer on one group of devices, or those before the first or after the last.
#[derive(Clone, Debug)]
pub struct LayerGroup {
    /// The group.
    pub group: Group,
    /// The layer; `None` before the first and after the last.
    pub layer: Option<u32>,
    /// Instructions, in program order.
    pub insts: Vec<Inst>,
    /// Leaves that occur in it, in order of first appearance: alike regions have corresponding lists.
    pub leaves: Vec<Var>,
    /// Text that is the same for regions that differ only in the names of weights and states.
    pub signature: String,
}

/// The group that plans for an instruction: its own, or for a copy to elsewhere the one that it comes from.
fn planned_by(graph: &Graph, inst: Inst) -> Option<Group> {
    let data = graph.inst(inst);
    let copied = matches!(data.op, Op::Copy(_)).then(|| data.operands[0]);
    data.results
        .iter()
        .copied()
        .chain(copied)
        .find_map(|v| match graph.value(v).place {
            Place::Group(g) => Some(g),
            Place::Host | Place::Device(_) => None,
        })
}

/// Cuts what a placed graph does on groups into regions, in program order of each group.
pub fn layer_groups(graph: &Graph, analysis: &Analysis) -> Vec<LayerGroup> {
    // What belongs to no layer precedes the layers or follows them, wherever it stands among them.
    let prologue = Prologue::of_graph(graph);
    let mut by_place: BTreeMap<(Group, u8, u32), LayerGroup> = BTreeMap::new();
    for (inst, data) in graph.insts() {
        let Some(group) = planned_by(graph, inst) else {
            continue;
        };
        let key = match data.layer {
            Some(l) => (group, 1, l),
            None if prologue.contains(inst) => (group, 0, 0),
            None => (group, 2, 0),
        };
        let region = by_place.entry(key).or_insert_with(|| LayerGroup {
            group,
            layer: data.layer,
            insts: Vec::new(),
            leaves: Vec::new(),
            signature: String::new(),
        });
        region.insts.push(inst);
    }
    let mut out: Vec<LayerGroup> = by_place.into_values().collect();
    for r in &mut out {
        fill(graph, analysis, r);
    }
    out
}

fn fill(graph: &Graph, analysis: &Analysis, region: &mut LayerGroup) {
    let mut number: BTreeMap<Value, usize> = BTreeMap::new();
    let mut seen: std::collections::BTreeSet<Var> = std::collections::BTreeSet::new();
    let mut text = String::new();
    for &inst in &region.insts {
        let data = graph.inst(inst);
        text.push_str(data.op.name());
        if !data.op.is_leaf() {
            for (name, attr) in data.op.attrs() {
                let _ = write!(text, " {name}={attr}");
            }
        }
        for v in &data.operands {
            let next = number.len();
            let n = *number.entry(*v).or_insert(next);
            let _ = write!(text, " {n}");
            if region.insts.binary_search(&graph.value(*v).def.0).is_err() {
                // What comes from outside counts by what it is, not by where it comes from.
                let outside = graph.value(*v);
                let weight = graph.inst(outside.def.0).op.is_stored();
                let _ = write!(text, "<{}{}", outside.ty, if weight { "w" } else { "" });
            }
        }
        for v in &data.results {
            let next = number.len();
            number.entry(*v).or_insert(next);
            let _ = write!(text, " {}", graph.value(*v).ty);
        }
        text.push('\n');
        let planned = |v: &&Value| graph.value(**v).place == Place::Group(region.group);
        for v in data.operands.iter().chain(&data.results).filter(planned) {
            for leaf in analysis.terms[v.index()].iter().flat_map(Term::leaves) {
                if seen.insert(leaf) {
                    // What the user wants whole in one region is not so in another.
                    let facts = analysis.leaves.get(&leaf);
                    if facts.is_some_and(|f| f.pinned_whole.is_some()) {
                        let _ = writeln!(text, "whole {}", region.leaves.len());
                    }
                    region.leaves.push(leaf);
                }
            }
        }
    }
    region.signature = text;
}
