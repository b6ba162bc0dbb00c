//! Generation: a token after the other, until something ends it.

use std::time::Instant;

use tpc_diag::Diagnostic;
use tpc_runtime::ExecError;
use tpc_text::{Sampler, Tokenizer};

use super::interrupt::Interrupt;
use super::sequence::{Reading, Sequence};
use super::stream::{Reader, Stream};
use crate::codes;
use crate::engine::execution_failure;
use crate::output::{self, Failure};

/// How an answer is generated.
pub(super) struct Generator<'a> {
    pub(super) sampler: Sampler,
    /// What knows the tokens that end an answer; `None` where none does.
    pub(super) ends: Option<&'a Tokenizer>,
    /// The most tokens of an answer; `None` for as many as fit.
    pub(super) most: Option<usize>,
    pub(super) interrupt: &'a Interrupt,
}

/// An answer that was generated.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Its tokens.
    pub(super) tokens: Vec<u32>,
    /// The prompt that was read for it.
    pub(super) prompt: Reading,
    /// The tokens of the answer that were read again, each for the next one.
    pub(super) steps: Reading,
    /// Whether nobody reads the answers any more.
    pub(super) reader_gone: bool,
}

impl Generator<'_> {
    /// Reads a prompt and generates its answer, which goes to the stream as it comes.
    ///
    /// # Errors
    /// TPC0426 for a prompt that does not fit, and those of the model and the sampler.
    pub(super) fn answer(
        &mut self,
        sequence: &mut Sequence<'_>,
        prompt: &[u32],
        mut stream: Stream<'_>,
    ) -> Result<Answer, Failure> {
        let prompt = sequence.rewind(prompt);
        fits(sequence, prompt.len())?;
        prompt.iter().for_each(|&id| self.sampler.accept(id));
        let failed = |e: ExecError| execution_failure(&e);
        let work = self.interrupt.work();
        let (mut logits, prompt) = sequence.read(prompt, &work).map_err(failed)?;
        let mut out = Answer {
            prompt,
            ..Answer::default()
        };
        let begun = Instant::now();
        let most = self.most.unwrap_or(usize::MAX);
        while let Some(last) = logits.take().filter(|_| most > 0) {
            let next = last.with(|all| self.sampler.sample(all)).map_err(failed)?;
            let next = next.map_err(Failure::usage)?;
            if self.ends.is_some_and(|t| t.ends_generation(next)) {
                break;
            }
            self.sampler.accept(next);
            out.tokens.push(next);
            if stream.push(next)? == Reader::Gone {
                out.reader_gone = true;
                break;
            }
            if out.tokens.len() >= most {
                break;
            }
            if sequence.room() == 0 {
                stream.finish()?;
                output::diagnostic(&full(sequence.n_ctx()));
                out.steps.time = begun.elapsed();
                return Ok(out);
            }
            let (read, reading) = sequence.read(&[next], &work).map_err(failed)?;
            out.steps.tokens += reading.tokens;
            logits = read;
        }
        out.steps.time = begun.elapsed();
        stream.finish()?;
        Ok(out)
    }
}

/// The note that no further token can be generated.
fn full(n_ctx: usize) -> Diagnostic {
    let message = format!("the context of {n_ctx} tokens is full: the answer ends here");
    let d = Diagnostic::new(&codes::CONTEXT_FULL, "context", message);
    d.help("a larger one: -c N")
}

/// Whether a prompt of `n` more tokens, and the begin of an answer, fit.
fn fits(sequence: &Sequence<'_>, n: usize) -> Result<(), Failure> {
    if n <= sequence.room() {
        return Ok(());
    }
    let message = format!(
        "the prompt has {} tokens, and the context {}",
        sequence.len() + n,
        sequence.n_ctx()
    );
    let d = Diagnostic::new(&codes::LONG_PROMPT, "prompt", message);
    Err(Failure::usage(d.help(format!(
        "a larger context: -c {}",
        (sequence.len() + n).next_multiple_of(1024)
    ))))
}
