//! Weights that devices hold more than once: the bytes by cause, and the factors that keep them so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use tpc_ir::factor::Var;
use tpc_ir::{Bindings, Op, Place, Value};
use tpc_passes::factors::{Selection, Summand};
use tpc_passes::plan::{LeanerSplit, SplitOption, facts, leaner_split};

use super::describe;
use super::kinds::suffix;
use super::plan::{CopiesReport, LeanerReport, MirroredReport, PlanReport};
use crate::format::{bytes, lens};
use crate::pipeline::CompiledModel;

/// The fraction of the model's bytes above which copies are noted and explained.
pub const NOTED_COPIES: f64 = 0.03;

/// The fraction of the model's bytes below which a group of tensors is left out of the explanation.
const LEAST_EXPLAINED: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Whole,
    EdgeBlocks,
    KvHeads,
}

impl Cause {
    const fn name(self) -> &'static str {
        match self {
            Cause::Whole => "whole",
            Cause::EdgeBlocks => "edge blocks",
            Cause::KvHeads => "kv heads",
        }
    }
}

/// A weight that devices hold more than once.
pub(super) struct CopiedWeight<'a> {
    tensor: &'a str,
    cause: Cause,
    bytes: u64,
}

/// Returns the weights that devices hold more than once.
pub(super) fn of_weights(compiled: &CompiledModel) -> Vec<CopiedWeight<'_>> {
    let batch = Bindings::default();
    let mut held: BTreeMap<&str, u64> = BTreeMap::new();
    for (_, inst) in compiled.programs.insts() {
        if let Op::Weight(w) = &inst.op {
            let value = compiled.programs.value(inst.results[0]);
            *held.entry(&w.tensor).or_default() += value.ty.bytes(&batch).unwrap_or(0);
        }
    }
    let mut out = Vec::new();
    let mut seen = BTreeSet::new();
    for (_, v) in compiled.weights() {
        let data = compiled.sharded.value(v);
        let Op::Weight(w) = compiled.sharded.def_op(v) else {
            continue;
        };
        if !seen.insert(w.tensor.as_str()) {
            continue;
        }
        let once = data.ty.bytes(&batch).unwrap_or(0);
        let held = held.get(w.tensor.as_str()).copied().unwrap_or(0);
        if held > once {
            out.push(CopiedWeight {
                tensor: &w.tensor,
                cause: match (data.sharding.is_split(), data.sharding.granule > 1) {
                    (false, _) => Cause::Whole,
                    (true, true) => Cause::EdgeBlocks,
                    (true, false) => Cause::KvHeads,
                },
                bytes: held - once,
            });
        }
    }
    out
}

/// Sums the bytes of copies by cause.
pub(super) fn by_cause(copies: &[CopiedWeight<'_>]) -> MirroredReport {
    let of = |cause: Cause| {
        let own = copies.iter().filter(|c| c.cause == cause);
        own.map(|c| c.bytes).fold(0, u64::saturating_add)
    };
    MirroredReport {
        whole_bytes: of(Cause::Whole),
        edge_block_bytes: of(Cause::EdgeBlocks),
        shared_head_bytes: of(Cause::KvHeads),
    }
}

/// Explains the copies of a model of so many bytes, largest first; an empty list below [`NOTED_COPIES`].
pub(super) fn explain(
    compiled: &CompiledModel,
    copies: &[CopiedWeight<'_>],
    model_bytes: u64,
) -> Vec<CopiesReport> {
    let least = |share: f64| (model_bytes as f64 * share) as u64;
    if by_cause(copies).total() <= least(NOTED_COPIES) {
        return Vec::new();
    }
    let mut groups: BTreeMap<(Cause, String), Vec<&CopiedWeight<'_>>> = BTreeMap::new();
    for copy in copies {
        let key = (copy.cause, suffix(copy.tensor));
        groups.entry(key).or_default().push(copy);
    }
    let explained = groups.into_iter().filter_map(|((cause, tensor), members)| {
        let bytes = members.iter().map(|c| c.bytes).sum();
        if bytes < least(LEAST_EXPLAINED) {
            return None;
        }
        let largest = members.iter().max_by_key(|c| c.bytes)?;
        let value = placed(compiled, largest.tensor);
        let leaner = value.and_then(|v| leaner_split(&compiled.planned, &compiled.request, v));
        Some(CopiesReport {
            tensor,
            count: members.len(),
            cause: cause.name(),
            bytes,
            reason: value.map_or_else(String::new, |v| reason(compiled, cause, v)),
            leaner: leaner.map(|l| leaner_report(compiled, &l)),
        })
    });
    let mut out: Vec<CopiesReport> = explained.collect();
    out.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.tensor.cmp(&b.tensor)));
    out
}

/// Returns the placed value of a weight on a group of devices.
fn placed(compiled: &CompiledModel, tensor: &str) -> Option<Value> {
    let graph = &compiled.planned.graph;
    let mut weights = graph.insts().filter_map(|(_, inst)| match &inst.op {
        Op::Weight(w) if w.tensor == tensor => inst.results.first().copied(),
        _ => None,
    });
    weights.find(|&v| matches!(graph.value(v).place, Place::Group(_)))
}

fn factor(compiled: &CompiledModel, leaf: Var) -> String {
    let size = compiled.planned.factors.space.size(leaf);
    match facts(&compiled.planned, leaf).and_then(|f| f.kind) {
        Some(kind) => format!("{size} ({kind})"),
        None => size.to_string(),
    }
}

fn reason(compiled: &CompiledModel, cause: Cause, v: Value) -> String {
    let planned = &compiled.planned;
    let mut leaves: Vec<Var> = Vec::new();
    for leaf in planned.analysis.summands[v.index()]
        .iter()
        .flat_map(Summand::leaves)
    {
        if !leaves.contains(&leaf) {
            leaves.push(leaf);
        }
    }
    if cause == Cause::Whole {
        let forbidden = |&leaf: &Var| {
            let facts = facts(planned, leaf)?;
            let why = facts.forbidden.as_ref()?;
            let text = describe::forbidden(&planned.graph, &facts, why);
            Some(format!("{}: {text}", factor(compiled, leaf)))
        };
        let all: Vec<String> = leaves.iter().filter_map(forbidden).collect();
        return match all.is_empty() {
            true => "every split costs more".to_owned(),
            false => all.join("; "),
        };
    }
    let Place::Group(group) = planned.graph.value(v).place else {
        return String::new();
    };
    let options = &planned.choice.options;
    let class = leaves
        .iter()
        .find_map(|&l| planned.choice.class_of(group, l));
    let Some(option) = class.map(|c| &options[c.index()]) else {
        return String::new();
    };
    let chain: Vec<String> = option.leaves.iter().map(|&l| factor(compiled, l)).collect();
    let parts = format!("{} in parts of {}", chain.join(" × "), split_lens(option));
    match cause {
        Cause::EdgeBlocks => format!(
            "{parts}, which end inside blocks of {}",
            planned.analysis.granules[v.index()]
        ),
        Cause::Whole | Cause::KvHeads => format!("{parts}, which share KV heads"),
    }
}

fn split_lens(option: &SplitOption) -> String {
    lens(&option.ranges.iter().map(|r| r.len).collect::<Vec<_>>())
}

fn leaner_report(compiled: &CompiledModel, found: &LeanerSplit) -> LeanerReport {
    let leaves = found.option.leaves.iter();
    let leaves: Vec<String> = leaves.map(|&l| factor(compiled, l)).collect();
    LeanerReport {
        factor: leaves.join(" × "),
        lens: found.option.ranges.iter().map(|r| r.len).collect(),
        chosen: (&found.chosen).into(),
        alternative: (&found.alternative).into(),
        layers: describe::layers(&found.layers),
    }
}

/// Returns a line per group of tensors.
pub(super) fn lines(report: &PlanReport) -> String {
    let mut out = String::new();
    for c in &report.copies {
        let share = c.bytes as f64 / (report.model.bytes as f64).max(1.0) * 100.0;
        let _ = write!(
            out,
            "  {} of {}, {} ({share:.2} %): {}; ",
            c.cause,
            c.tensor,
            bytes(c.bytes),
            c.reason
        );
        let _ = match &c.leaner {
            None => writeln!(out, "no split stores less"),
            Some(l) => writeln!(
                out,
                "{} in parts of {} would store {} instead of {} and take {:.1} instead of {:.1} µs per token, {}",
                l.factor,
                lens(&l.lens),
                bytes(l.alternative.bytes.iter().sum()),
                bytes(l.chosen.bytes.iter().sum()),
                l.alternative.decode_us,
                l.chosen.decode_us,
                l.layers
            ),
        };
    }
    out
}
