use tpc_diag::Diagnostic;
use tpc_runtime::{BestLogits, Data, ExecError, Predicted, Tensor};
use tpc_text::Sampler;

/// Returns logits as f32. Converts them in `buffer` if the executor computes in f64.
///
/// # Errors
/// Returns an error if the tensor holds integers.
pub fn as_f32<'l>(logits: &'l Tensor, buffer: &'l mut Vec<f32>) -> Result<&'l [f32], ExecError> {
    if let Data::F32(all) = logits.data() {
        return Ok(all);
    }
    buffer.clear();
    buffer.extend(logits.reals()?.iter().map(|&x| x as f32));
    Ok(buffer)
}

/// Returns the index of the largest logit; the first of equal ones.
pub(crate) fn argmax(row: &[f32]) -> u32 {
    let best = |best: (u32, f32), at: (u32, &f32)| match *at.1 > best.1 {
        true => (at.0, *at.1),
        false => best,
    };
    (0..).zip(row).fold((0, f32::NEG_INFINITY), best).0
}

/// The logits of a batch's output rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogitRows<'l> {
    /// All logits.
    All { logits: &'l [f32], n_vocab: usize },
    /// The largest logits of each row.
    Best(&'l BestLogits),
}

impl<'l> LogitRows<'l> {
    /// Returns the logits as f32. Converts them in `buffer` if the executor computes in f64.
    pub(crate) fn new(
        predicted: Predicted<'l>,
        buffer: &'l mut Vec<f32>,
    ) -> Result<LogitRows<'l>, ExecError> {
        Ok(match predicted {
            Predicted::All(logits) => LogitRows::All {
                n_vocab: logits.dims()[0],
                logits: as_f32(logits, buffer)?,
            },
            Predicted::Best(best) => LogitRows::Best(best),
        })
    }

    /// Chooses the token of a row.
    pub(crate) fn sample(&self, sampler: &mut Sampler, row: usize) -> Result<u32, Diagnostic> {
        match self {
            LogitRows::All { logits, n_vocab } => {
                sampler.sample(&logits[row * n_vocab..][..*n_vocab])
            }
            LogitRows::Best(best) => sampler.sample_best(best.row(row)),
        }
    }
}
