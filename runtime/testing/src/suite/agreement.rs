//! Compares an executor's results with the reference.

use tpc_ir::op::Op;

use super::exceptions::{Check, exception};
use super::executor::{ExecutorUnderTest, Factory, Failure};
use crate::cases::{Case, generator};
use crate::compare::{difference, expected};
use crate::random::Random;
use crate::stored::Stored;

type Executors = Vec<Box<dyn ExecutorUnderTest>>;

/// Runs the cases of every `parts`-th op, starting at op `part`. `TPC_ONLY` selects ops with names that contain its
/// value.
///
/// # Panics
/// Panics if a result differs from the reference, an executor skips an op without an exception, or an exception no
/// longer applies.
pub fn agree(factory: &Factory, part: usize, parts: usize) {
    let mut executors = (factory.build)();
    if executors.is_empty() {
        return;
    }
    let only = std::env::var("TPC_ONLY").unwrap_or_default();
    let ops = Op::NAMES.iter().copied().flatten().copied();
    let ops = ops.skip(part).step_by(parts);
    let wrong: Vec<String> = ops
        .filter(|op| op.contains(&only))
        .flat_map(|op| check_op(factory, op, &mut executors))
        .collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

fn check_op(factory: &Factory, op: &str, executors: &mut Executors) -> Vec<String> {
    let exception = exception(factory.executor, Check::Agreement, op);
    let Some(generate) = generator(op) else {
        return match exception {
            Some(_) => Vec::new(),
            None => vec![format!("{op} has no cases and no exception")],
        };
    };
    let outcomes = (0..factory.cases).map(|seed| {
        let random = Random::new(op, seed);
        let case = generate(op, &random);
        (check(&case, executors, &random), case)
    });
    let wrong = outcomes.filter_map(|(outcome, case)| match (outcome, exception) {
        (Ok(()), None) | (Err(Failure::NoKernel(_)), Some(_)) => None,
        (Ok(()), Some(e)) => Some(format!("the exception no longer applies: {e:?}")),
        (Err(failure), _) => Some(format!("{failure:?}: {case:?}")),
    });
    wrong.collect()
}

/// Runs a case on all executors, and if possible in place on a random executor.
fn check(case: &Case, executors: &mut Executors, random: &Random) -> Result<(), Failure> {
    let operands = executors[0].operands(case, random);
    let results = executors[0].results(case, &operands, random);
    let wanted = expected(case, &operands);
    let case = &Case {
        tolerance: executors[0].tolerance(case),
        ..case.clone()
    };
    let mut first: Option<Vec<Stored>> = None;
    for (i, executor) in executors.iter_mut().enumerate() {
        let (mut inputs, mut outputs) = (operands.clone(), results.clone());
        executor.run(case, &mut inputs, &mut outputs, None)?;
        hold(inputs == operands, "an operand has changed")?;
        for (output, result) in outputs.iter().zip(&results) {
            hold(
                output.same_gaps(result),
                "the kernel wrote bytes outside its result",
            )?;
        }
        match &first {
            Some(first) => hold(
                *first == outputs,
                &format!("variant {i} gives different bits"),
            )?,
            None => {
                for (output, wanted) in outputs.iter().zip(&wanted) {
                    difference(case, output, wanted).map_or(Ok(()), |d| Err(Failure::Other(d)))?;
                }
                first = Some(outputs);
            }
        }
    }
    let Some((operand, result)) = case.in_place else {
        return Ok(());
    };
    if operands[operand].dtype() == results[result].dtype() {
        let (mut inputs, mut outputs) = (operands, results);
        let executor = random.below(executors.len());
        executors[executor].run(case, &mut inputs, &mut outputs, case.in_place)?;
        if let Some(d) = difference(case, &inputs[operand], &wanted[result]) {
            return Err(Failure::Other(format!("in place: {d}")));
        }
    }
    Ok(())
}

fn hold(holds: bool, what: &str) -> Result<(), Failure> {
    match holds {
        true => Ok(()),
        false => Err(Failure::Other(what.to_owned())),
    }
}
