//! Compares expected results of a case with an executor's results.

use tpc_ir::{Bindings, DType};
use tpc_runtime::{OpContext, Tensor, eval};

use crate::cases::{Arg, Case};
use crate::random::Random;
use crate::stored::Stored;

/// Stores a case's operands in random layouts.
pub fn operands(case: &Case, random: &Random) -> Vec<Stored> {
    let store = |arg: &Arg| Stored::of(arg.dtype, arg.dims, &arg.data, random);
    case.operands.iter().map(store).collect()
}

/// Stores a case's operands in random layouts for devices, whose elements are aligned.
pub fn aligned_operands(case: &Case, random: &Random) -> Vec<Stored> {
    let stored = operands(case, random).into_iter();
    stored.map(Stored::aligned).collect()
}

/// Returns result memory for devices, filled with a pattern, or a copy of an updated tensor.
pub fn aligned_results(case: &Case, operands: &[Stored], random: &Random) -> Vec<Stored> {
    let shapes = case.shapes().into_iter();
    match case.op.is_update() {
        true => vec![operands[0].clone()],
        false => shapes
            .map(|s| Stored::poison(s, random).aligned())
            .collect(),
    }
}

/// Computes the results with the reference.
///
/// # Panics
/// Panics if the case does not fit its op.
pub fn expected(case: &Case, operands: &[Stored]) -> Vec<Tensor> {
    let tensors: Vec<Tensor> = operands.iter().map(Stored::tensor).collect();
    let tensors: Vec<&Tensor> = tensors.iter().collect();
    let ctx = OpContext {
        bindings: &Bindings::default(),
        options: case.options,
    };
    eval(&case.op, &tensors, &case.shapes(), &ctx)
        .unwrap_or_else(|e| panic!("the case does not fit its op: {e}\n{case:?}"))
}

fn numbers(t: &Tensor) -> Vec<f64> {
    match t.ints() {
        Ok(ints) => ints.iter().map(|&i| i as f64).collect(),
        Err(_) => t.reals().expect("real or integer").into_owned(),
    }
}

/// Describes the first element whose error exceeds the case's tolerance.
pub fn difference(case: &Case, found: &Stored, wanted: &Tensor) -> Option<String> {
    // From 65520 on, numbers round to an infinite f16.
    let largest = if found.dtype() == DType::F16 {
        65520.0
    } else {
        f64::MAX
    };
    let (found, wanted) = (numbers(&found.tensor()), numbers(wanted));
    if found.len() != wanted.len() {
        return Some(format!(
            "{} elements, expected {}",
            found.len(),
            wanted.len()
        ));
    }
    for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
        let infinite = w.is_infinite();
        let w = if largest < w.abs() {
            w.signum() * f64::INFINITY
        } else {
            *w
        };
        let bound = case.tolerance * w.abs().max(case.magnitude);
        let same = *f == w || f.is_nan() && w.is_nan() || !infinite && (f - w).abs() <= bound;
        if !same {
            return Some(format!("element {i}: found {f}, expected {w}\n{case:?}"));
        }
    }
    None
}
