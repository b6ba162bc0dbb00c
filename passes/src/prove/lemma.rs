use tpc_ir::Budget;

use super::boundary::Boundary;
use super::encoding::Encoding;
use super::knowledge::{Lemma, LocalCounterpart, ModelRef};
use super::obligation::Obligation;
use super::refutation::{Refutation, RefutationReason};
use super::{crossing, diagnose};

#[derive(Debug)]
pub(super) enum Failure {
    /// A value is neither a value of the model nor a part of one.
    Refuted(Box<Refutation>),
    /// A sum begins in this section and may end in the next.
    Crossing,
}

impl From<Box<Refutation>> for Failure {
    fn from(r: Box<Refutation>) -> Failure {
        Failure::Refuted(r)
    }
}

/// Proves that each live-out value of an obligation is justified. If another section follows (`has_next`), a value may
/// be an unfinished sum.
///
/// # Errors
/// Returns the first op that keeps a value from being justified.
pub(super) fn prove(
    task: &Obligation<'_>,
    boundary: &Boundary,
    has_next: bool,
    without: Option<&str>,
    budget: &Budget,
) -> Result<Lemma, Failure> {
    let mut encoding = Encoding::new(task, boundary, without, budget)?;
    let before = encoding.terms.used_resources();
    let found = find_counterparts(&mut encoding, has_next);
    // The diagnosis uses the budget, too.
    for ((resource, now), (_, then)) in encoding.terms.used_resources().into_iter().zip(before) {
        budget.take(resource, now.saturating_sub(then));
    }
    let counterparts = found?;
    Ok(Lemma {
        counterparts,
        same: equal_values(&encoding),
        terms: encoding.terms.graph.total_size(),
        found: encoding.terms.found,
    })
}

fn find_counterparts(
    encoding: &mut Encoding<'_>,
    has_next: bool,
) -> Result<Vec<(usize, usize, Vec<LocalCounterpart>)>, Failure> {
    let task = encoding.task;
    if encoding.terms.graph.analysis.contradiction {
        let inst = task.of_programs.first().copied();
        return Err(
            Refutation::of_output(task.programs, inst, RefutationReason::Contradiction).into(),
        );
    }
    let mut counterparts = Vec::new();
    for (i, &inst) in task.of_programs.iter().enumerate() {
        for (r, &v) in task.programs.inst(inst).results.iter().enumerate() {
            if !task.is_live_out(v) {
                continue;
            }
            match encoding.counterparts(encoding.programs[&v]) {
                own if !own.is_empty() => counterparts.push((i, r, own)),
                _ if has_next
                    && (crossing::is_open_sum(encoding, encoding.programs[&v])
                        || diagnose::is_summand(encoding, v)) =>
                {
                    return Err(Failure::Crossing);
                }
                _ if has_next && !encoding.terms.charge(0) => {
                    return Err(Refutation::at(task.programs, inst, RefutationReason::Limit).into());
                }
                _ => return Err(diagnose::first_fault(encoding, v).into()),
            }
        }
    }
    Ok(counterparts)
}

fn equal_values(encoding: &Encoding<'_>) -> Vec<(usize, usize, ModelRef)> {
    let task = encoding.task;
    let mut same = Vec::new();
    for (i, &inst) in task.of_model.iter().enumerate() {
        for (r, v) in task.model.inst(inst).results.iter().enumerate() {
            if let Some(n) = encoding.terms.model_number(encoding.model[v]) {
                let first = encoding.numbers[n as usize];
                if first != ModelRef::Internal(i, r) {
                    same.push((i, r, first));
                }
            }
        }
    }
    same
}
