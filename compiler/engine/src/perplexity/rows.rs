use std::thread;

use tpc_diag::Diagnostic;

use crate::error::Error;

/// Rows of logits, `n_vocab` each.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'l> {
    /// The logits.
    pub logits: &'l [f32],
    /// Number of logits per row.
    pub n_vocab: usize,
    /// Number of threads that work on the rows.
    pub threads: usize,
}

/// The maximum of a row of logits, its index, and the logarithm of the sum of exponentials relative to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peak {
    pub(crate) max: f32,
    pub(crate) index: usize,
    pub(crate) log_sum: f64,
}

impl Peak {
    pub(crate) fn of(logits: &[f32]) -> Peak {
        let (mut index, mut max) = (0, f32::NEG_INFINITY);
        for (i, &x) in logits.iter().enumerate() {
            if x > max {
                (index, max) = (i, x);
            }
        }
        // Exponentials in f32 and a sum in f64, as in llama-perplexity.
        let sum: f64 = logits.iter().map(|&x| f64::from((x - max).exp())).sum();
        Peak {
            max,
            index,
            log_sum: sum.ln(),
        }
    }

    /// Returns the negative log-likelihood of a token.
    pub(crate) fn nll(&self, logit: f32) -> f64 {
        self.log_sum - f64::from(logit - self.max)
    }
}

impl Rows<'_> {
    /// Returns the number of rows.
    pub const fn len(&self) -> usize {
        match self.n_vocab {
            0 => 0,
            n => self.logits.len() / n,
        }
    }

    /// True if there are zero rows.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns row `i`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.logits[i * self.n_vocab..][..self.n_vocab]
    }

    /// Calls `work` with each row's index, and returns the results in order.
    pub fn each<T: Send>(&self, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let n = self.len();
        let each = n.div_ceil(self.threads.clamp(1, n.max(1))).max(1);
        let work = &work;
        thread::scope(|scope| {
            let first = each..n;
            let others: Vec<_> = first
                .step_by(each)
                .map(|from| {
                    scope.spawn(move || (from..n.min(from + each)).map(work).collect::<Vec<T>>())
                })
                .collect();
            let mut out: Vec<T> = (0..n.min(each)).map(work).collect();
            for other in others {
                match other.join() {
                    Ok(done) => out.extend(done),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            out
        })
    }

    /// Returns the negative log-likelihood of each row's target.
    ///
    /// # Errors
    /// Returns TPC0571 if a likelihood is not a finite number.
    pub fn nlls(&self, targets: &[u32]) -> Result<Vec<f64>, Error> {
        let nlls = self.each(|i| {
            let row = self.row(i);
            Peak::of(row).nll(row[targets[i] as usize])
        });
        match nlls.iter().all(|nll| nll.is_finite()) {
            true => Ok(nlls),
            false => Err(logits_error()),
        }
    }
}

/// Returns the error for logits that do not give finite likelihoods.
pub fn logits_error() -> Error {
    let message = "a token's likelihood is not a finite number";
    let d = Diagnostic::new(&tpc_text::LOGITS, "logits", message);
    Error::findings(vec![d.help("run `tpc lint` on the model file")])
}
