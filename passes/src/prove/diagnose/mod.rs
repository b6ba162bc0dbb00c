//! Diagnoses a failed proof: the op to blame, and the message.
//!
//! - `verdicts.rs`: values that are correct if their operands are;
//! - `search.rs`: the first op whose value cannot be justified;
//! - `heuristics.rs`, `leaf_parts.rs`: an earlier op or leaf that differs from its namesakes;
//! - `render.rs`: values as text.
//!
//! Names and heuristics only affect the message. Diagnosis uses the proof's step budget; if it runs out, the named op
//! may come after the fault.

mod heuristics;
mod leaf_parts;
mod render;
mod search;
mod verdicts;

use tpc_ir::{Inst, Value};

use super::encoding::Encoding;
use super::refutation::{Refutation, RefutationReason};
use verdicts::{Scope, Verdicts};

pub(super) use leaf_parts::suspect_leaf;

const MORE_TERMS: usize = 1 << 16;

pub(super) fn first_fault(encoding: &mut Encoding<'_>, goal: Value) -> Box<Refutation> {
    // Terms added here only improve the message, so their number is limited.
    encoding.terms.max_terms = encoding.terms.graph.total_size() + MORE_TERMS;
    let verdicts = Verdicts::new(encoding, Scope::ModelSums);
    let (inst, what) = match search::find_odd_collective(encoding, &verdicts, goal) {
        Some(odd) => (odd, RefutationReason::Summand),
        None => search::first_unjustified(encoding, &verdicts, goal),
    };
    let (inst, what) = match what {
        RefutationReason::Value => suspect(encoding, inst).unwrap_or((inst, what)),
        other => (inst, other),
    };
    let programs = encoding.task.programs;
    let mut refutation = Refutation::at(programs, inst, what);
    if let Some(&v) = programs.inst(inst).results.first() {
        refutation.found = Some(render::render_computed(encoding, v));
        refutation.expected = render::render_expected(encoding, v);
    }
    refutation
}

fn suspect(encoding: &Encoding<'_>, inst: Inst) -> Option<(Inst, RefutationReason)> {
    let task = encoding.task;
    if let Some(leaf) = suspect_leaf(task.programs, task.model, task.leaves, inst) {
        return Some((leaf, RefutationReason::Part));
    }
    let other = heuristics::find_odd_layout(encoding, inst);
    let other = other.or_else(|| heuristics::find_misnamed(encoding, inst));
    other.map(|other| (other, RefutationReason::OtherValue))
}

pub(super) fn is_summand(encoding: &mut Encoding<'_>, v: Value) -> bool {
    let verdicts = Verdicts::new(encoding, Scope::AnySum);
    verdicts.summands.contains(&v) || encoding.terms.is_zero(encoding.programs[&v])
}
