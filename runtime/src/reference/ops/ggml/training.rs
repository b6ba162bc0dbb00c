use super::Function;
use super::call::Call;
use crate::error::ExecError;
use crate::tensor::Tensor;

pub(super) const FUNCTIONS: &[(&str, Function)] = &[
    ("count_equal", count_equal),
    ("silu_back", silu_back),
    ("rms_norm_back", rms_norm_back),
    ("soft_max_back", soft_max_back),
    ("get_rows_back", get_rows_back),
    ("cross_entropy_loss", cross_entropy_loss),
    ("cross_entropy_loss_back", cross_entropy_loss_back),
    ("opt_step_sgd", opt_step_sgd),
];

fn count_equal(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (a, b) = (call.integers(0)?, call.integers(1)?);
    call.ensure(a.len() == b.len(), "operand sizes do not match")?;
    let equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
    call.elements(vec![equal as f64])
}

/// Computes the gradient of `x · sigmoid(x)`. Sources: the result's gradient, `x`.
fn silu_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (grad, x) = (call.array(0)?, call.array(1)?);
    call.ensure(grad.ne == x.ne, "operand sizes do not match")?;
    let slope = |x: f64| {
        let s = 1.0 / (1.0 + (-x).exp());
        s * (1.0 + x * (1.0 - s))
    };
    let all = grad.data.iter().zip(x.data.iter());
    call.elements(all.map(|(g, &x)| g * slope(x)).collect())
}

fn by_row(
    call: &Call<'_>,
    first: usize,
    f: impl Fn(&[f64], &[f64]) -> Vec<f64>,
) -> Result<Tensor, ExecError> {
    let (a, b) = (call.array(first)?, call.array(first + 1)?);
    call.ensure(a.ne == b.ne, "operand sizes do not match")?;
    call.elements(a.rows().zip(b.rows()).flat_map(|(a, b)| f(a, b)).collect())
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Computes the gradient of an RMS norm. Word: `eps`. Sources: the result's gradient, the operand.
fn rms_norm_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let eps = call.float(0);
    by_row(call, 0, |grad, x| {
        let n = x.len() as f64;
        let mean = dot(x, x) / n + eps;
        let along = dot(x, grad) / (n * mean);
        let all = grad.iter().zip(x);
        all.map(|(g, x)| (g - x * along) / mean.sqrt()).collect()
    })
}

/// Computes the gradient of a softmax. Word: `scale`. Sources: the result's gradient, the result.
fn soft_max_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let scale = call.float(0);
    call.ensure(call.float(1) == 0.0, "ALiBi")?;
    by_row(call, 0, |grad, y| {
        let along = dot(grad, y);
        let all = grad.iter().zip(y);
        all.map(|(g, y)| scale * y * (g - along)).collect()
    })
}

/// Adds each gradient row to its table row.
fn get_rows_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (rows, indices) = (call.array(0)?, call.integers(1)?);
    let [n, count, ..] = call.result.dims;
    call.ensure(rows.ne[0] == n, "lengths of rows")?;
    let mut out = vec![0.0; n * count];
    for (row, &index) in rows.rows().zip(indices) {
        let at = usize::try_from(index).ok().filter(|&i| i < count);
        let at = at.ok_or(ExecError::Index {
            what: "row",
            index,
            bound: count,
        })?;
        let to = out[at * n..][..n].iter_mut();
        to.zip(row).for_each(|(to, x)| *to += x);
    }
    call.elements(out)
}

fn log_soft_max(x: &[f64]) -> Vec<f64> {
    let max = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = x.iter().map(|x| (x - max).exp()).sum();
    x.iter().map(|x| x - max - sum.ln()).collect()
}

/// Sources: logits, target probabilities.
fn cross_entropy_loss(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (x, wanted) = (call.array(0)?, call.array(1)?);
    call.ensure(x.ne == wanted.ne, "operand sizes do not match")?;
    let loss = |(x, wanted): (&[f64], &[f64])| dot(&log_soft_max(x), wanted);
    let (sum, rows) = (
        x.rows().zip(wanted.rows()).map(loss).sum::<f64>(),
        x.rows().count(),
    );
    call.elements(vec![-sum / rows as f64])
}

/// Computes the gradient of the logits. Sources: the loss's gradient, logits, target probabilities.
fn cross_entropy_loss_back(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let grad = call.array(0)?.at([0; 4]);
    let rows = call.array(1)?.rows().count() as f64;
    by_row(call, 1, |x, wanted| {
        let all = log_soft_max(x).into_iter().zip(wanted);
        all.map(|(x, w)| (x.exp() - w) * grad / rows).collect()
    })
}

/// Sources: weights, gradient, `[rate, decay]`.
fn opt_step_sgd(call: &Call<'_>) -> Result<Tensor, ExecError> {
    let (x, grad, p) = (call.array(0)?, call.array(1)?, call.array(2)?);
    call.ensure(
        x.ne == grad.ne && p.data.len() == 2,
        "operand sizes do not match",
    )?;
    let (rate, keep) = (p.data[0], 1.0 - p.data[0] * p.data[1]);
    let all = x.data.iter().zip(grad.data.iter());
    call.elements(all.map(|(x, g)| x * keep - rate * g).collect())
}
