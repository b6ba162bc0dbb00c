//! The answers of a small model, whole and as programs, compared.

use serde::Serialize;
use tpc_runtime::quant::can_quantise;

use super::difference::{TOLERANCE, first_difference};
use super::feed::{Answer, Feed};
use super::weights;
use tpc_core::golden::{Distance, distance};
use tpc_core::pipeline::Compiled;
use tpc_core::shrink::{self, Shrunk};
use tpc_diag::{Diagnostic, codes};

/// The size of a comparison whose answers agree, and how well they do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Batches that were run.
    pub batches: usize,
    /// Outputs that were compared, over all batches.
    pub outputs: usize,
    /// Numbers that were compared.
    pub numbers: usize,
    /// The largest error of an output, `Σ(a − b)² / Σa²` with the whole model's numbers as `a`.
    pub nmse: f64,
    /// The largest difference of two numbers.
    pub max_abs: f64,
}

/// Makes a planned model small, in types that the runtime can write.
///
/// # Errors
/// TPC0392 where no small sizes fit its ops.
pub fn shrink(compiled: &Compiled) -> Result<Shrunk, Diagnostic> {
    shrink::shrink(compiled, &can_quantise)
}

/// Runs a small model whole and as programs, and compares the answers.
///
/// # Errors
/// TPC0392 when the model cannot be run, TPC0394 when the programs answer something else.
pub fn compare(shrunk: &Shrunk, feed: &Feed) -> Result<Agreement, Box<Diagnostic>> {
    let cannot = |why: String| cannot_run(shrunk, &why);
    let weights = weights::random(&shrunk.model).map_err(|e| cannot(e.to_string()))?;
    let whole = feed
        .run(&shrunk.model, &weights, &mut |_, _| {})
        .map_err(|e| cannot(e.to_string()))?;
    for answer in &whole {
        let size: f64 = answer.values.iter().map(|x| x * x).sum();
        if !size.is_normal() {
            return Err(cannot(format!(
                "the squares of {} add up to {size}",
                answer.name
            )));
        }
    }
    let differs =
        |how: String| {
            let Shrunk {
                model,
                sharded,
                programs,
                ..
            } = shrunk;
            let first = first_difference(model, sharded, programs, feed, &weights);
            let mut message = format!("the programs compute something else than the model: {how}");
            let mut entity = programs.name.clone();
            if let Some(d) = first {
                message += &format!("\n  {d}");
                entity = d.value;
            }
            Box::new(Diagnostic::new(&codes::NUMBERS_DIFFER, entity, message).help(
            "this is a fault of tpc; please report it with the command and the model's header",
        ))
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

fn cannot_run(shrunk: &Shrunk, why: &str) -> Box<Diagnostic> {
    let message = format!("the small model cannot be run: {why}");
    Box::new(
        Diagnostic::new(&codes::CANNOT_SHRINK, &shrunk.model.name, message)
            .help("`tpc verify` without --numeric proves the plan without running anything"),
    )
}

/// The distance of an answer from that of the whole model; infinite where their sizes differ.
fn answer_distance(whole: &Answer, parts: &Answer) -> Distance {
    if whole.values.len() != parts.values.len() {
        return Distance::INFINITE;
    }
    distance(whole.values.iter().copied(), parts.values.iter().copied())
}
