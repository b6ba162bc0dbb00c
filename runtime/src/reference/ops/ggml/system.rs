use super::Function;
use super::call::Call;
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] =
    &[("out_prod", out_prod), ("solve_tri", solve_tri)];

/// Computes `Σ a[i, k] · b[j, k]` over `k`. Batches of `a` repeat.
fn out_prod(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, b) = (call.array(0)?, call.array(1)?);
    let times = |axis: usize| match a.ne[axis] {
        0 => 1,
        n => (b.ne[axis] / n).max(1) as i64,
    };
    let (times, steps) = ([times(2), times(3)], a.ne[1] as i64);
    call.ensure(a.ne[1] == b.ne[1], "matrix sizes do not match")?;
    call.filled(|[i, j, i2, i3]| {
        let term = |k: i64| a.at([i, k, i2 / times[0], i3 / times[1]]) * b.at([j, k, i2, i3]);
        (0..steps).map(term).sum()
    })
}

/// Solves `a · x = b` for lower triangular matrices `a: [n, n, …]` and columns `b: [columns, n, …]`.
fn solve_tri(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, b) = (call.array(0)?, call.array(1)?);
    let [columns, n, ..] = b.ne;
    let sizes = a.ne == [n, n, b.ne[2], b.ne[3]] && b.ne == call.result.dims;
    call.ensure(sizes, "matrix sizes do not match")?;
    let mut x = b.data.into_owned();
    let matrices = a.data.chunks_exact((n * n).max(1));
    for (a, x) in matrices.zip(x.chunks_exact_mut((n * columns).max(1))) {
        for row in 0..n {
            for column in 0..columns {
                let known = (0..row).map(|k| a[row * n + k] * x[k * columns + column]);
                let known: f64 = known.sum();
                let at = &mut x[row * columns + column];
                *at = (*at - known) / a[row * n + row];
            }
        }
    }
    call.elements(x)
}
