/// A perplexity, from the negative log-likelihoods of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    count: usize,
    sum: f64,
    squares: f64,
}

impl Estimate {
    /// Adds the negative log-likelihood of a token.
    pub fn add(&mut self, nll: f64) {
        self.count += 1;
        self.sum += nll;
        self.squares += nll * nll;
    }

    /// Returns the number of tokens.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the mean negative log-likelihood.
    pub fn mean(&self) -> f64 {
        self.sum / self.count as f64
    }

    /// Returns the standard error of the mean; 0 for equal likelihoods.
    pub fn deviation(&self) -> f64 {
        let n = self.count as f64;
        let variance = self.squares / n - self.mean() * self.mean();
        match variance > 0.0 && self.count > 1 {
            true => (variance / (n - 1.0)).sqrt(),
            false => 0.0,
        }
    }

    /// Returns the perplexity.
    pub fn perplexity(&self) -> f64 {
        self.mean().exp()
    }

    /// Returns the standard error of the perplexity.
    pub fn error(&self) -> f64 {
        self.perplexity() * self.deviation()
    }
}
