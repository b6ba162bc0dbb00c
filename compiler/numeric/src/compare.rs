//! Compares a small model's outputs: the whole model against the devices' programs.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::Serialize;
use tpc_runtime::knows;
use tpc_runtime::quant::can_quantise;

use super::difference::{TOLERANCE, first_difference};
use super::feed::{Answer, Feed};
use super::{need, weights};
use tpc_core::golden::{Distance, distance};
use tpc_core::pipeline::CompiledModel;
use tpc_core::shrink::{self, ShrunkModel};
use tpc_diag::{Diagnostic, codes};
use tpc_ir::{Budget, BudgetExceeded, Graph, Op};

/// The result of a successful comparison.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Agreement {
    /// The number of batches.
    pub batches: usize,
    /// The number of compared outputs, over all batches.
    pub outputs: usize,
    /// The number of compared elements.
    pub numbers: usize,
    /// The maximum error of an output: `Σ(a − b)² / Σa²`, with `a` of the whole model.
    pub nmse: f64,
    /// The maximum absolute difference of two elements.
    pub max_abs: f64,
    /// Ops of the capture that tpc does not know. A stand-in ran instead: a fixed linear function of their operands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stand_ins: Vec<String>,
}

/// Returns the names of ops that the runtime does not know.
fn unknown_ops(model: &Graph) -> Vec<String> {
    let names = model.insts().filter_map(|(_, inst)| match &inst.op {
        Op::Opaque(op) if !knows(&op.name) => Some(op.name.clone()),
        _ => None,
    });
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// Shrinks a planned model, and replaces types that the runtime cannot quantise.
///
/// # Errors
/// Returns TPC0392 if the ops do not allow small sizes.
pub fn shrink(compiled: &CompiledModel) -> Result<ShrunkModel, Diagnostic> {
    shrink::shrink(compiled, &can_quantise)
}

/// Runs a small model as a whole and as programs, and compares the outputs.
///
/// # Errors
/// Returns TPC0392 if the model cannot run, TPC0394 if outputs differ, and TPC0395 if the run exceeds the budget of a
/// command.
pub fn compare(shrunk: &ShrunkModel, feed: &Feed) -> Result<Agreement, Box<Diagnostic>> {
    compare_within(shrunk, feed, &Budget::new(feed.limits()))
}

/// Runs [`compare`] within a budget. Always reports a difference, but the search for the first different value stops
/// when the budget runs out.
///
/// # Errors
/// Returns the errors of [`compare`].
pub fn compare_within(
    shrunk: &ShrunkModel,
    feed: &Feed,
    budget: &Budget,
) -> Result<Agreement, Box<Diagnostic>> {
    // The comparison frees its memory before the search, so each gets the full budget.
    need::spend_in_turn(&[&shrunk.model, &shrunk.programs], feed, &budget.part())
        .map_err(|e| too_large(shrunk, &e))?;
    let cannot = |why: String| cannot_run(shrunk, &why);
    let weights = weights::random(&shrunk.model).map_err(|e| cannot(e.to_string()))?;
    let whole = feed
        .run(&shrunk.model, &weights, &mut |_, _| {})
        .map_err(|e| cannot(e.to_string()))?;
    for answer in &whole {
        let size: f64 = answer.values.iter().map(|x| x * x).sum();
        if !size.is_normal() {
            return Err(cannot(format!(
                "the sum of squares of {} is {size}",
                answer.name
            )));
        }
    }
    let differs = |how: String| {
        let programs = &shrunk.programs;
        let mut message = format!("the programs do not compute the model: {how}");
        let mut entity = programs.name.clone();
        match first_difference(shrunk, feed, &weights, budget) {
            Ok(Some(d)) => {
                message += &format!("\n  {d}");
                entity = d.value;
            }
            Ok(None) => {}
            Err(e) => message += &format!("\n  the first value that differs is unknown: {e}"),
        }
        Box::new(
            Diagnostic::new(&codes::NUMBERS_DIFFER, entity, message)
                .help("this is a bug in tpc: report it with the command and the model's header"),
        )
    };
    let parts = feed
        .run(&shrunk.programs, &weights, &mut |_, _| {})
        .map_err(|e| differs(e.to_string()))?;
    let mut out = Agreement {
        batches: feed.batches(),
        outputs: whole.len(),
        numbers: 0,
        nmse: 0.0,
        max_abs: 0.0,
        stand_ins: unknown_ops(&shrunk.model),
    };
    for (a, b) in whole.iter().zip(&parts) {
        let d = answer_distance(a, b);
        if d.nmse > TOLERANCE {
            return Err(differs(format!("{} have NMSE {:.1e}", a.name, d.nmse)));
        }
        out.numbers += a.values.len();
        out.nmse = out.nmse.max(d.nmse);
        out.max_abs = out.max_abs.max(d.max_abs);
    }
    Ok(out)
}

fn too_large(shrunk: &ShrunkModel, e: &BudgetExceeded) -> Box<Diagnostic> {
    let value = e.at.as_ref().map(|at| at.value.clone());
    let entity = value.filter(|v| !v.is_empty());
    let entity = entity.unwrap_or_else(|| shrunk.model.name.clone());
    Box::new(Diagnostic::new(&codes::OVER_BUDGET, entity, e.to_string()).help(
        "tpc cannot shrink the op's sizes: use `tpc verify` without --numeric, which proves the plan without a run",
    ))
}

fn cannot_run(shrunk: &ShrunkModel, why: &str) -> Box<Diagnostic> {
    let message = format!("tpc cannot run the small model: {why}");
    Box::new(
        Diagnostic::new(&codes::CANNOT_SHRINK, &shrunk.model.name, message)
            .help("use `tpc verify` without --numeric, which proves the plan without a run"),
    )
}

/// Returns the distance between the outputs; infinite if sizes differ.
fn answer_distance(whole: &Answer, parts: &Answer) -> Distance {
    if whole.values.len() != parts.values.len() {
        return Distance::INFINITE;
    }
    distance(whole.values.iter().copied(), parts.values.iter().copied())
}
