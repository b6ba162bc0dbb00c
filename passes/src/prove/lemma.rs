//! Lemmas: an obligation is proved, or the value that stops the proof is found.

use tpc_ir::Budget;

use super::boundary::Boundary;
use super::encoding::Encoding;
use super::knowledge::{Lemma, ModelRef};
use super::obligation::Obligation;
use super::refutation::{Refutation, Unproven};
use super::{crossing, diagnose};

/// The reason that an obligation is not proved.
#[derive(Debug)]
pub(super) enum Failure {
    /// A value is neither one of the model nor a part of one.
    Refuted(Box<Refutation>),
    /// A later section completes a sum that this one begins.
    Crossing(Box<Refutation>),
}

impl From<Box<Refutation>> for Failure {
    fn from(r: Box<Refutation>) -> Failure {
        Failure::Refuted(r)
    }
}

/// Proves that each value that is live out of an obligation is justified.
///
/// # Errors The first op that keeps a value from being justified.
pub(super) fn prove(
    task: &Obligation<'_>,
    boundary: &Boundary,
    without: Option<&str>,
    budget: &Budget,
) -> Result<Lemma, Failure> {
    let mut encoding = Encoding::new(task, boundary, without, budget)?;
    if encoding.terms.graph.analysis.contradiction {
        let inst = task.of_programs.first().copied();
        return Err(Refutation::of_output(task.programs, inst, Unproven::Contradiction).into());
    }
    let mut counterparts = Vec::new();
    for (i, &inst) in task.of_programs.iter().enumerate() {
        for (r, &v) in task.programs.inst(inst).results.iter().enumerate() {
            if !task.is_live_out(v) {
                continue;
            }
            match encoding.counterparts(encoding.programs[&v]) {
                own if !own.is_empty() => counterparts.push((i, r, own)),
                _ if crossing::is_open_sum(&encoding, encoding.programs[&v])
                    || diagnose::is_summand(&mut encoding, v) =>
                {
                    return Err(Failure::Crossing(diagnose::first_fault(&mut encoding, v)));
                }
                _ => return Err(diagnose::first_fault(&mut encoding, v).into()),
            }
        }
    }
    Ok(Lemma {
        counterparts,
        same: equal_values(&encoding),
        terms: encoding.terms.graph.total_size(),
        found: encoding.terms.found,
    })
}

/// The model's values that are equal to earlier ones.
fn equal_values(encoding: &Encoding<'_>) -> Vec<(usize, usize, ModelRef)> {
    let task = encoding.task;
    let mut same = Vec::new();
    for (i, &inst) in task.of_model.iter().enumerate() {
        for (r, v) in task.model.inst(inst).results.iter().enumerate() {
            if let Some(n) = encoding.terms.model_number(encoding.model[v]) {
                let first = encoding.numbers[n as usize];
                if first != ModelRef::Inside(i, r) {
                    same.push((i, r, first));
                }
            }
        }
    }
    same
}
