//! The sequence of tokens that a model has read.

use std::time::{Duration, Instant};

use tpc_runtime::{Batch, Data, ExecError, Tensor};

use super::interrupt::Work;
use crate::engine::Model;

/// The sequence of tokens that a model has read: those of its cache.
pub(super) struct Sequence<'m> {
    model: &'m mut dyn Model,
    tokens: Vec<u32>,
    /// The most tokens that it may have.
    n_ctx: usize,
    /// The most tokens of a batch.
    batch: usize,
}

/// The logits of the last token that was read.
pub(super) struct Logits(Tensor);

impl Logits {
    /// A number per token of the vocabulary.
    pub(super) fn with<T>(&self, read: impl FnOnce(&[f32]) -> T) -> Result<T, ExecError> {
        match self.0.data() {
            Data::F32(all) => Ok(read(all)),
            _ => {
                let all: Vec<f32> = self.0.reals()?.iter().map(|&x| x as f32).collect();
                Ok(read(&all))
            }
        }
    }
}

/// What reading tokens took.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// Tokens that were read.
    pub(super) tokens: usize,
    /// The time it took.
    pub(super) time: Duration,
}

impl<'m> Sequence<'m> {
    /// An empty sequence.
    pub(super) fn new(model: &'m mut dyn Model, n_ctx: usize, batch: usize) -> Sequence<'m> {
        Sequence {
            model,
            tokens: Vec::new(),
            n_ctx,
            batch: batch.max(1),
        }
    }

    /// The number of tokens that it has.
    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    /// The number of tokens that it may still read.
    pub(super) fn room(&self) -> usize {
        self.n_ctx.saturating_sub(self.tokens.len())
    }

    /// The most tokens that it may have.
    pub(super) fn n_ctx(&self) -> usize {
        self.n_ctx
    }

    /// Makes it a text that begins as it does, or else an empty one; returns the tokens of the text that are to be read.
    pub(super) fn rewind<'t>(&mut self, text: &'t [u32]) -> &'t [u32] {
        match text.strip_prefix(self.tokens.as_slice()) {
            Some(rest) if !rest.is_empty() => rest,
            _ => {
                self.model.clear();
                self.tokens.clear();
                text
            }
        }
    }

    /// Reads tokens in batches, and returns the logits of the last; `None` where there are none, or the user ended it.
    ///
    /// # Errors
    /// Those of the model.
    pub(super) fn read(
        &mut self,
        tokens: &[u32],
        work: &Work<'_>,
    ) -> Result<(Option<Logits>, Reading), ExecError> {
        let begun = Instant::now();
        let mut last = None;
        let mut done = 0;
        for part in tokens.chunks(self.batch) {
            if work.ends() {
                last = None;
                break;
            }
            let first = self.tokens.len() as u32;
            let mut batch = Batch::sequence(part, first, 0).last_only();
            done += part.len();
            // Logits of the prompt's last token alone are of use.
            if done < tokens.len() {
                batch.output_rows.clear();
            }
            last = Some(Logits(self.model.decode(&batch)?));
            self.tokens.extend_from_slice(part);
        }
        let reading = Reading {
            tokens: done,
            time: begun.elapsed(),
        };
        Ok((last, reading))
    }
}
