//! A small model is run whole and as programs, and the answers are compared.

mod first;
mod run;
mod weights;

pub use first::Difference;
pub use run::Feed;

use serde::Serialize;
use tpc_ir::Graph;
use tpc_runtime::quant::can_quantise;
use tpc_runtime::{ExecError, MemoryWeights};

use run::Answer;
use tpc_core::golden::distance;
use tpc_core::pipeline::Compiled;
use tpc_core::shrink::{self, Shrunk};
use tpc_diag::{Diagnostic, codes};

/// The most that answers may differ (NMSE): sums in another order do by 1e-15 in each number, where one decides how a
/// number of a cache is rounded, by more.
pub const TOLERANCE: f64 = 1e-9;

/// What came of the comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// Batches that were run.
    pub batches: usize,
    /// Outputs that were compared, over all batches.
    pub outputs: usize,
    /// Numbers that were compared.
    pub numbers: usize,
    /// The largest error of an output.
    pub nmse: f64,
    /// The largest difference of two numbers.
    pub max_abs: f64,
}

/// Makes a planned model small, of types that can be written.
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
    let Shrunk {
        model,
        sharded,
        programs,
        ..
    } = shrunk;
    let cannot = |why: String| {
        let message = format!("the small model cannot be run: {why}");
        Box::new(
            Diagnostic::new(&codes::CANNOT_SHRINK, &model.name, message)
                .help("`tpc verify` without --numeric proves the plan without running anything"),
        )
    };
    let weights = weights::random(model).map_err(|e| cannot(e.to_string()))?;
    let run = |graph: &Graph, weights: &MemoryWeights| -> Result<Vec<Answer>, ExecError> {
        feed.run(graph, weights, &mut |_, _| {})
    };
    let whole = run(model, &weights).map_err(|e| cannot(e.to_string()))?;
    for answer in &whole {
        let size: f64 = answer.values.iter().map(|x| x * x).sum();
        if !size.is_normal() {
            return Err(cannot(format!("{} is of size {size}", answer.name)));
        }
    }
    let differs =
        |what: String| {
            let first = first::difference(model, sharded, programs, feed, &weights, TOLERANCE);
            let mut message = format!("the programs compute something else than the model: {what}");
            let mut entity = programs.name.clone();
            if let Some(d) = first {
                let layer = d
                    .layer
                    .map_or_else(String::new, |l| format!(" of layer {l}"));
                message += &format!(
                    "\n  the first value that differs is `{}`{layer}, by `{}` on {} (NMSE {:.1e})",
                    d.value, d.op, d.place, d.nmse
                );
                entity = d.value;
            }
            Box::new(Diagnostic::new(&codes::NUMBERS_DIFFER, entity, message).help(
            "this is a fault of tpc; please report it with the command and the model's header",
        ))
        };
    let parts = run(programs, &weights).map_err(|e| differs(e.to_string()))?;
    let mut out = Agreement {
        batches: feed.batches(),
        outputs: whole.len(),
        numbers: 0,
        nmse: 0.0,
        max_abs: 0.0,
    };
    for (a, b) in whole.iter().zip(&parts) {
        let d = if a.values.len() == b.values.len() {
            distance(a.values.iter().copied(), b.values.iter().copied())
        } else {
            distance([f64::NAN], [0.0])
        };
        if d.nmse > TOLERANCE {
            return Err(differs(format!("{} have NMSE {:.1e}", a.name, d.nmse)));
        }
        out.numbers += a.values.len();
        out.nmse = out.nmse.max(d.nmse);
        out.max_abs = out.max_abs.max(d.max_abs);
    }
    Ok(out)
}
