use tpc_ir::op::Op;
use tpc_ir::random::SplitMix64;
use tpc_ir::{Bindings, DType, RANK};

use super::{OpContext, Options, eval};
use crate::error::ExecError;
use crate::tensor::{Shape, Tensor};

pub(super) fn real(dims: &[usize], data: &[f64]) -> Tensor {
    Tensor::reals_of(pad(dims), data.to_vec()).expect("the data have the elements of the sizes")
}

pub(super) fn ints(dims: &[usize], data: &[i64]) -> Tensor {
    Tensor::ints_of(pad(dims), data.to_vec()).expect("the data have the elements of the sizes")
}

/// Returns fixed pseudo-random numbers in [-1, 1).
pub(super) fn noise(dims: &[usize], seed: u64) -> Tensor {
    let n: usize = dims.iter().product();
    let mut random = SplitMix64::new(seed);
    let data: Vec<f64> = (0..n).map(|_| random.signed()).collect();
    real(dims, &data)
}

pub(super) fn pad(dims: &[usize]) -> [usize; RANK] {
    let mut out = [1; RANK];
    out[..dims.len()].copy_from_slice(dims);
    out
}

pub(super) fn results(
    op: impl Into<Op>,
    operands: &[&Tensor],
    shapes: &[Shape],
) -> Result<Vec<Tensor>, ExecError> {
    let bindings = Bindings::default();
    let ctx = OpContext {
        bindings: &bindings,
        options: Options::default(),
    };
    eval(&op.into(), operands, shapes, &ctx)
}

/// Returns the only result of `op`, an f32 tensor of these sizes.
pub(super) fn try_run(
    op: impl Into<Op>,
    operands: &[&Tensor],
    dims: &[usize],
) -> Result<Tensor, ExecError> {
    let shape = Shape {
        dtype: DType::F32,
        dims: pad(dims),
    };
    let mut all = results(op, operands, &[shape])?;
    assert_eq!(all.len(), 1);
    let t = all.pop().expect("one result");
    assert_eq!(t.dims(), pad(dims));
    Ok(t)
}

#[track_caller]
pub(super) fn run(op: impl Into<Op>, operands: &[&Tensor], dims: &[usize]) -> Tensor {
    try_run(op, operands, dims).expect("the op fits its operands")
}

#[track_caller]
pub(super) fn code(op: impl Into<Op>, operands: &[&Tensor], dims: &[usize]) -> &'static str {
    try_run(op, operands, dims)
        .expect_err("the op must fail")
        .code()
        .id
}

#[track_caller]
pub(super) fn close(found: &Tensor, expected: &[f64]) {
    let found = found.reals().expect("real");
    assert_eq!(found.len(), expected.len(), "number of elements");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(
            (a - b).abs() <= 1e-12 * b.abs().max(1.0),
            "element {i}: found {a}, expected {b}"
        );
    }
}
