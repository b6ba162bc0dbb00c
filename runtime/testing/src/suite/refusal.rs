//! Invalid operands and results, which executors must refuse.

use tpc_ir::op::Op;

use super::exceptions::{Check, exception};
use super::executor::{ExecutorUnderTest, Factory, Failure};
use crate::cases::{Case, generator, out_of_range, set_cell};
use crate::random::Random;

/// Ops with an index operand, and the indexed item.
const INDEXED: [(&str, &str); 5] = [
    ("get_rows", "row"),
    ("set_rows", "slice to set"),
    ("mul_mat_id", "expert"),
    ("add_id", "expert"),
    ("ssm_scan", "cell of a state"),
];

fn run(executor: &mut dyn ExecutorUnderTest, case: &Case) -> Result<(), Failure> {
    let random = Random::new("failure", 0);
    let mut operands = executor.operands(case, &random);
    let mut results = executor.results(case, &operands, &random);
    executor.run(case, &mut operands, &mut results, None)
}

/// Runs cases with indices out of range.
///
/// # Panics
/// Panics if an executor does not report the index.
pub fn refuse_indices(factory: &Factory) {
    for executor in &mut (factory.build)() {
        for (op, thing) in INDEXED {
            for value in [-1, 1 << 20] {
                match run(&mut **executor, &out_of_range(op, value)) {
                    Err(Failure::Index { what, index, bound }) => {
                        assert_eq!((what.unwrap_or(thing), index), (thing, value), "{op}");
                        assert!(bound > 0 && bound < 1 << 20, "{op}: {bound}");
                    }
                    other => panic!("{op}: {other:?}"),
                }
            }
        }
        // Cell 64 belongs to the other part. Cells 128 and 2²⁰ are beyond the cache.
        for (cell, is_refused) in [
            (63, false),
            (64, false),
            (128, true),
            (-1, true),
            (1 << 20, true),
        ] {
            match run(&mut **executor, &set_cell(cell)) {
                Ok(()) if !is_refused => {}
                Err(Failure::Index { .. }) if is_refused => {}
                other => panic!("cell {cell}: {other:?}"),
            }
        }
    }
}

/// Runs cases whose last result has one row too many.
///
/// # Panics
/// Panics if an executor accepts such a result without an exception, or an exception no longer applies.
pub fn refuse_misfits(factory: &Factory) {
    for executor in &mut (factory.build)() {
        for op in Op::NAMES.iter().copied().flatten().copied() {
            let Some(generate) = generator(op) else {
                continue;
            };
            let mut case = generate(op, &Random::new(op, 3));
            let last = case.results.last_mut().expect("ops have results");
            last.1[1] += 1;
            let exception = exception(factory.executor, Check::Misfit, op);
            match (run(&mut **executor, &case), exception) {
                (Err(Failure::Shape(_)), None) | (Ok(()), Some(_)) => {}
                (outcome, e) => panic!("{op}: {outcome:?}, exception {e:?}: {case:?}"),
            }
        }
    }
}
