//! The text form of a plan: the factors of weights and states by layer, each with its split or the reason for no split.

use std::collections::BTreeSet;
use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Class, Graph, Group, Inst, Op, Value};

use super::PlannedGraph;
use super::kind::kind_of;
use super::layer_group::LayerGroup;
use super::options::{Refusal, SplitOption, refusal};
use crate::factors::{FactorPosition, Selection, factor_positions};

/// Prints the chosen splits of weights and states.
pub fn print(planned: &PlannedGraph) -> String {
    let mut out = String::new();
    let mut seen = BTreeSet::new();
    for group in &planned.layer_groups {
        let stored = |l: &&Var| !factor_positions(&planned.analysis, **l).is_empty();
        let new: Vec<Var> = group.leaves.iter().filter(stored).copied().collect();
        let new: Vec<Var> = new
            .into_iter()
            .filter(|l| seen.insert((group.group, *l)))
            .collect();
        if new.is_empty() {
            continue;
        }
        let _ = writeln!(out, "{}", title(group));
        for leaf in new {
            factor(planned, group.group, leaf, &mut out);
        }
    }
    out
}

fn title(group: &LayerGroup) -> String {
    match group.layer {
        Some(layer) => format!("{} layer {layer}", group.group),
        None => format!("{} outside layers", group.group),
    }
}

fn factor(planned: &PlannedGraph, group: Group, leaf: Var, out: &mut String) {
    let (graph, analysis) = (&planned.graph, &planned.analysis);
    let size = planned.factors.space.size(leaf);
    let kind = kind_of(graph, analysis, &[leaf]);
    let class = planned.choice.class_of(group, leaf);
    let split = class.map(|c| (c, &planned.choice.options[c.index()]));
    let outcome = match (split, refusal(&planned.factors, analysis, leaf)) {
        (Some((class, option)), _) => split_words(class, option),
        (None, Some(reason)) => format!("whole, since {}", reason_words(graph, &reason)),
        (None, None) => "whole".to_owned(),
    };
    let _ = writeln!(out, "  {kind} {size}: {outcome}");
    let all: Vec<String> = factor_positions(analysis, leaf)
        .iter()
        .map(|t| axis(graph, t))
        .collect();
    let _ = writeln!(out, "    {}", all.join(", "));
}

/// Prints `split c0 [0:1024, 1024:1024]`: the class and the range of each device, in flat indices for a chain.
fn split_words(class: Class, option: &SplitOption) -> String {
    let ranges = option.ranges.iter();
    let ranges: Vec<String> = ranges.map(|r| format!("{}:{}", r.start, r.len)).collect();
    let chain = match option.leaves.len() {
        1 => "",
        _ => " as a chain",
    };
    let blocks = match option.shares_blocks {
        true => ", edge blocks stored twice",
        false => "",
    };
    format!("split {class}{chain} [{}]{blocks}", ranges.join(", "))
}

fn name(graph: &Graph, v: Value) -> String {
    match graph.def_op(v) {
        Op::Weight(w) => w.tensor.clone(),
        Op::State(s) => s.name.clone(),
        _ if graph.value(v).name.is_empty() => v.to_string(),
        _ => graph.value(v).name.clone(),
    }
}

fn op(graph: &Graph, inst: Inst) -> String {
    let data = graph.inst(inst);
    let result = data.results.first().map(|v| name(graph, *v));
    format!("`{}` of {}", data.op.name(), result.unwrap_or_default())
}

fn reason_words(graph: &Graph, reason: &Refusal) -> String {
    match reason {
        Refusal::Whole(inst) => format!("{} needs it whole", op(graph, *inst)),
        Refusal::Repeated(v) => format!("{} has it twice", name(graph, *v)),
        Refusal::Indexed(inst) => format!(
            "the index of {} runs along more than this factor",
            op(graph, *inst)
        ),
        Refusal::Symbolic => "its size is known only at run time".to_owned(),
        Refusal::NotStored => "no weight or state has it".to_owned(),
        Refusal::PinnedWhole(v) => format!("an override mirrors {}", name(graph, *v)),
        Refusal::Granule(unit) => format!("its blocks of {unit} leave fewer than two units"),
    }
}

/// Prints `w_up axis 1`, with the factor's position and the segment if there are several.
fn axis(graph: &Graph, t: &FactorPosition) -> String {
    let mut out = format!("{} axis {}", name(graph, t.value), t.axis);
    if t.factors > 1 {
        let _ = write!(out, " factor {}/{}", t.position + 1, t.factors);
    }
    if let Some(segment) = t.segment {
        let _ = write!(out, " segment {}/{}", segment + 1, t.segments);
    }
    out
}
