//! Tests: timed runs of tokens through a model.

use std::time::{Duration, Instant};
use tpc_ir::random::SplitMix64;

use tpc_runtime::{Batch, ExecError, KernelTime, Logits, TokenPos};

use super::statistics::spread;
use crate::progress::Progress;
use tpc_engine::AnySession;

/// A test: the tokens to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Test {
    /// A prompt of `n` tokens, processed in batches.
    Prompt { n: usize, depth: usize },
    /// `n` tokens, one after another.
    Generation { n: usize, depth: usize },
    /// A prompt followed by generated tokens.
    Both {
        prompt: usize,
        n: usize,
        depth: usize,
    },
}

impl Test {
    pub(super) fn tokens(&self) -> usize {
        match *self {
            Test::Prompt { n, .. } | Test::Generation { n, .. } => n,
            Test::Both { prompt, n, .. } => prompt + n,
        }
    }

    /// Returns the number of cached tokens per sequence before the test.
    pub(super) fn depth(&self) -> usize {
        match *self {
            Test::Prompt { depth, .. }
            | Test::Generation { depth, .. }
            | Test::Both { depth, .. } => depth,
        }
    }

    /// Returns the number of cells that each sequence fills.
    pub(super) fn cells(&self) -> usize {
        self.tokens() + self.depth()
    }

    pub(super) const fn lengths(&self) -> [usize; 2] {
        match *self {
            Test::Prompt { n, .. } => [n, 0],
            Test::Generation { n, .. } => [0, n],
            Test::Both { prompt, n, .. } => [prompt, n],
        }
    }

    pub(super) fn name(&self) -> String {
        let name = match *self {
            Test::Prompt { n, .. } => format!("pp{n}"),
            Test::Generation { n, .. } => format!("tg{n}"),
            Test::Both { prompt, n, .. } => format!("pp{prompt}+tg{n}"),
        };
        match self.depth() {
            0 => name,
            depth => format!("{name} @ d{depth}"),
        }
    }

    /// Returns the name with the number of sequences, such as `tg128 ×4`.
    pub(super) fn name_of(&self, sequences: usize) -> String {
        match sequences {
            1 => self.name(),
            n => format!("{} ×{n}", self.name()),
        }
    }
}

pub(super) struct Measured {
    pub(super) test: Test,
    pub(super) sequences: usize,
    /// The time of each repetition.
    pub(super) times: Vec<Duration>,
    /// Each kernel's time over all repetitions; empty without profiling.
    pub(super) profile: Vec<KernelTime>,
    /// The other program's result for this test, with `--compare`.
    pub(super) other: Option<Compared>,
}

impl Measured {
    pub(super) const fn new(test: Test, sequences: usize) -> Measured {
        Measured {
            test,
            sequences,
            times: Vec::new(),
            profile: Vec::new(),
            other: None,
        }
    }

    pub(super) fn name(&self) -> String {
        self.test.name_of(self.sequences)
    }

    /// Returns each repetition's tokens per second, summed over all sequences.
    pub(super) fn speeds(&self) -> Vec<f64> {
        let n = (self.test.tokens() * self.sequences) as f64;
        self.times
            .iter()
            .map(|t| n / t.as_secs_f64().max(1e-9))
            .collect()
    }

    /// Returns the mean and the sample standard deviation of the speed.
    pub(super) fn speed(&self) -> (f64, f64) {
        spread(&self.speeds())
    }
}

#[derive(Debug)]
pub(super) struct Compared {
    pub(super) command: String,
    /// Tokens per second.
    pub(super) speeds: Vec<f64>,
}

impl Compared {
    /// Returns each round's speed ratio, tpc to the other program, ascending.
    pub(super) fn ratios(&self, ours: &[f64]) -> Vec<f64> {
        let mut out: Vec<f64> = ours.iter().zip(&self.speeds).map(|(a, b)| a / b).collect();
        out.sort_by(f64::total_cmp);
        out
    }
}

pub(super) struct Bench<'m, 'a> {
    pub(super) model: &'m mut AnySession<'a>,
    pub(super) n_vocab: u32,
    /// The maximum batch size, in tokens.
    pub(super) batch: usize,
    pub(super) sequences: usize,
    pub(super) warmup: Warmup,
    /// The tokens of each sequence before the last test, which its run left in the caches.
    pub(super) filled: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Warmup {
    Once,
    None,
}

impl Bench<'_, '_> {
    pub(super) fn measure(
        &mut self,
        test: Test,
        repetitions: u64,
        progress: &Progress,
    ) -> Result<Measured, ExecError> {
        let mut out = Measured::new(test, self.sequences);
        if self.warmup == Warmup::Once {
            self.once(test)?;
        }
        progress.advance(1);
        let mut sum = Vec::new();
        for _ in 0..repetitions {
            let (time, profile) = self.once(test)?;
            out.times.push(time);
            KernelTime::add(&mut sum, profile);
            progress.advance(1);
        }
        out.profile = sum;
        Ok(out)
    }

    /// Keeps the first tokens of all sequences that the next test shares with the last one, and returns their number per
    /// sequence. Filling a cache takes longer than most tests.
    fn keep(&mut self, depth: usize) -> Result<usize, ExecError> {
        // The tokens of several sequences depend on the depth.
        let shared = match self.sequences {
            1 => self.filled.min(depth),
            _ if self.filled == depth => depth,
            _ => 0,
        };
        let sequences = 0..self.sequences as u32;
        let kept = shared as u64;
        if shared == 0 || !sequences.clone().all(|s| self.model.can_truncate(s, kept)) {
            self.model.clear()?;
            return Ok(0);
        }
        for sequence in sequences {
            self.model.truncate(sequence, kept)?;
        }
        Ok(shared)
    }

    /// Runs a test once. First runs the tokens of the test's depth, untimed.
    pub(super) fn once(&mut self, test: Test) -> Result<(Duration, Vec<KernelTime>), ExecError> {
        let kept = self.keep(test.depth())?;
        let mut tokens = Tokens {
            random: SplitMix64::new(1),
            n_vocab: self.n_vocab,
        };
        let (n, depth, sequences) = (test.tokens(), test.depth(), self.sequences);
        // Runs one sequence after the other.
        let in_turn = |n: usize, first: usize| {
            move |i: usize| TokenPos {
                pos: (first + i % n) as u32,
                seq: (i / n) as u32,
            }
        };
        // Runs token `i` of every sequence, then token `i + 1`.
        let together = |first: usize| {
            move |i: usize| TokenPos {
                pos: (first + i / sequences) as u32,
                seq: (i % sequences) as u32,
            }
        };
        let before = tokens.take(depth * sequences);
        if kept < depth {
            self.read(
                &before[kept * sequences..],
                self.batch,
                in_turn(depth - kept, kept),
            )?;
            // Recurrent states can return only to checkpoints.
            for sequence in 0..sequences as u32 {
                self.model.checkpoint(sequence)?;
            }
        }
        self.filled = depth;
        self.model.take_profile();
        let timed = tokens.take(n * sequences);
        let begun = Instant::now();
        let [prompt, _] = test.lengths();
        let (read, generated) = timed.split_at(prompt * sequences);
        if !read.is_empty() {
            self.read(read, self.batch, in_turn(prompt, depth))?;
        }
        self.read(generated, sequences, together(depth + prompt))?;
        Ok((begun.elapsed(), self.model.take_profile()))
    }

    /// Runs tokens at the positions of `at`. The last token of each sequence in a batch has logits.
    fn read(
        &mut self,
        tokens: &[u32],
        n: usize,
        at: impl Fn(usize) -> TokenPos,
    ) -> Result<(), ExecError> {
        let mut batch = Batch::with_capacity(n);
        for first in (0..tokens.len()).step_by(n.max(1)) {
            batch.clear();
            let end = tokens.len().min(first + n);
            for (i, &token) in (first..end).zip(&tokens[first..end]) {
                let last = i + 1 == end || at(i + 1).seq != at(i).seq;
                let logits = match last {
                    true => Logits::Requested,
                    false => Logits::NotRequested,
                };
                batch.push(token, at(i), logits);
            }
            self.model.step(&batch)?;
        }
        Ok(())
    }
}

/// A generator of random tokens, equal in every run.
struct Tokens {
    random: SplitMix64,
    n_vocab: u32,
}

impl Tokens {
    fn take(&mut self, n: usize) -> Vec<u32> {
        (0..n).map(|_| self.next()).collect()
    }

    fn next(&mut self) -> u32 {
        (self.random.next_u64() % u64::from(self.n_vocab.max(1))) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_rounds() {
        let other = Compared {
            command: String::new(),
            speeds: vec![10.0, 20.0, 5.0],
        };
        let ratios = other.ratios(&[20.0, 20.0, 15.0]);
        assert_eq!(ratios, [1.0, 2.0, 3.0]);
    }

    #[test]
    fn speeds_have_a_mean_and_a_deviation() {
        let m = Measured {
            test: Test::Prompt { n: 6, depth: 0 },
            sequences: 2,
            times: [2, 3, 6].map(Duration::from_secs).to_vec(),
            profile: Vec::new(),
            other: None,
        };
        assert_eq!(m.speeds(), [6.0, 4.0, 2.0]);
        assert_eq!(m.speed(), (4.0, 2.0));
        assert_eq!(m.name(), "pp6 ×2");
    }

    #[test]
    fn tests_have_the_names_of_llama_bench() {
        let name = |t: Test| t.name();
        assert_eq!(name(Test::Prompt { n: 512, depth: 0 }), "pp512");
        assert_eq!(
            name(Test::Generation {
                n: 128,
                depth: 4096
            }),
            "tg128 @ d4096"
        );
    }
}
