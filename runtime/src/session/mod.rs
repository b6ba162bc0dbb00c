//! A session: a language model that turns batches of tokens into logits.
//!
//! A [`Session`] keeps the cells of the caches and drives an [`Executor`], of which it knows nothing else. A batch or a
//! draft that fails leaves the session as it was.

mod batch;
mod cells;
mod config;
mod inputs;
mod kv_cells;
mod sequences;

#[cfg(test)]
mod tests;

use tpc_ir::op::InputKind;
use tpc_ir::stage::Executable;
use tpc_ir::{Bindings, Symbol, TensorType, Verified};

pub use batch::{Batch, TokenPos};
pub use config::SessionConfig;
pub use kv_cells::KvCells;

use crate::error::ExecError;
use crate::executor::Executor;
use crate::profile::KernelTime;
use crate::reference::{Inputs, Interpreter, Observer, Options};
use crate::tensor::Tensor;
use crate::weights::WeightSource;
use cells::Cells;
use inputs::{BatchInputs, indices, missing};
use sequences::parts;

/// A part of the last batch, whose later phases draft.
#[derive(Clone, Debug)]
struct Draftable<R> {
    run: R,
    /// Its tokens, as indices into the batch.
    tokens: Vec<usize>,
    /// The output row of the batch that each of its own is.
    rows: Vec<usize>,
}

/// An [`Executor`] with the cells of its KV caches and of its recurrent states.
///
/// The model's output is named `logits`. Its masks hold distances when an attention op uses ALiBi.
///
/// A model with recurrent states runs on parts of a batch that have equally many tokens of each sequence. A sequence
/// has its cell from its first token until it is removed.
///
/// A model that drafts ([`InputKind::NextTokens`]) decodes without its drafts; [`Self::draft`] runs them afterwards, when
/// the tokens that they take are known.
#[derive(Clone, Debug)]
pub struct Session<E: Executor> {
    executor: E,
    config: SessionConfig,
    cells: Cells,
    /// The parts of the last batch.
    draftable: Vec<Draftable<E::Run>>,
}

/// A session on the reference executor.
pub type ReferenceSession<'g> = Session<Interpreter<'g>>;

impl<'g> Session<Interpreter<'g>> {
    /// A session on the reference executor, with empty caches and states.
    ///
    /// # Errors
    /// Those of [`Self::with_executor`] and of [`Interpreter::new`].
    pub fn new<S: Executable>(
        graph: &'g Verified<S>,
        weights: &dyn WeightSource,
        config: SessionConfig,
    ) -> Result<Self, ExecError> {
        Session::with_executor(
            Interpreter::new(graph, weights, Options::default())?,
            config,
        )
    }
}

impl<E: Executor> Session<E> {
    /// A session with empty caches and states.
    ///
    /// # Errors
    /// [`ExecError::MissingOutput`] when the model has no `logits`.
    pub fn with_executor(executor: E, config: SessionConfig) -> Result<Session<E>, ExecError> {
        if !executor.interface().has_output(LOGITS) {
            return Err(no_output(LOGITS));
        }
        let recurrent = executor.interface().recurrent;
        Ok(Session {
            executor,
            config,
            cells: Cells::new(&config, recurrent),
            draftable: Vec::new(),
        })
    }

    /// The executor, for its statistics.
    pub const fn executor(&self) -> &E {
        &self.executor
    }

    /// The times of kernels since the last call; none where the executor does not measure them.
    pub fn take_profile(&mut self) -> Vec<KernelTime> {
        self.executor.take_profile()
    }

    /// The configuration.
    pub const fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Decodes a batch and returns the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// # Errors
    /// When the batch is malformed, the cache is full, or the program cannot run; the session is then as it was.
    pub fn decode(&mut self, batch: &Batch) -> Result<Tensor, ExecError> {
        self.decode_with(batch, &mut |kind, _| Err(missing(kind)))
    }

    /// [`Self::decode`], showing every tensor to `observer` as it is produced, where the executor keeps them.
    ///
    /// # Errors
    /// The same.
    pub fn decode_observed(
        &mut self,
        batch: &Batch,
        observer: &mut Observer<'_>,
    ) -> Result<Tensor, ExecError> {
        self.transact(|s| s.decode_parts(batch, &mut |kind, _| Err(missing(kind)), Some(observer)))
    }

    /// [`Self::decode`], asking `others` for inputs that a session does not know.
    ///
    /// # Errors
    /// The same, and those of `others`.
    pub fn decode_with(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
    ) -> Result<Tensor, ExecError> {
        self.transact(|s| s.decode_parts(batch, others, None))
    }

    /// Drafts further tokens for the last batch: the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// At first `next` holds the token that follows each token of the batch, and the logits are of the tokens after
    /// these. Where the model drafts more than one token, the session may draft again, with `next` one further on, and
    /// so on. Drafting stores the batch's tokens for later drafts: for good drafts, draft after every batch.
    ///
    /// # Errors
    /// [`ExecError::NothingToDraft`] before the first batch and after the last draft, [`ExecError::BadBatch`] when
    /// `next` does not have one token for each of the batch, and when the program cannot run; the session is then as it
    /// was.
    pub fn draft(&mut self, next: &[u32]) -> Result<Tensor, ExecError> {
        let n: usize = self.draftable.iter().map(|d| d.tokens.len()).sum();
        if !self.draftable.is_empty() && next.len() != n {
            return Err(ExecError::BadBatch {
                what: format!("{} next tokens for {n} tokens", next.len()),
            });
        }
        self.transact(|s| s.draft_parts(next))
    }

    /// Removes a sequence; its cells are free and it may start again at position 0.
    pub fn remove_sequence(&mut self, seq: u32) {
        self.cells.remove_sequence(seq);
    }

    /// Removes all sequences and clears all states.
    pub fn clear(&mut self) {
        self.cells.clear();
        self.executor.reset_states();
        self.draftable.clear();
    }

    /// Runs `step`, and keeps what it did to cells and states only if it succeeds.
    fn transact(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Stepped<E::Run>, ExecError>,
    ) -> Result<Tensor, ExecError> {
        let cells = self.cells.clone();
        match step(self) {
            Ok((logits, draftable)) => {
                self.executor.commit();
                self.draftable = draftable;
                Ok(logits)
            }
            Err(e) => {
                self.executor.discard();
                self.cells = cells;
                Err(e)
            }
        }
    }

    fn draft_parts(&mut self, next: &[u32]) -> Result<Stepped<E::Run>, ExecError> {
        let mut draftable = self.draftable.clone();
        let mut parts = Vec::new();
        for Draftable { run, tokens, rows } in &mut draftable {
            let ahead = self.executor.lookahead(run);
            let ahead = ahead.ok_or(ExecError::NothingToDraft)?;
            let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
                InputKind::NextTokens(_) => indices(tokens.iter().map(|&t| i64::from(next[t]))),
                kind => Err(missing(kind)),
            };
            let mut outputs = self.executor.run_phase(run, &mut inputs)?;
            let name = draft_name(ahead);
            let logits = outputs.remove(&name).ok_or_else(|| no_output(&name))?;
            parts.push((logits, rows.clone()));
        }
        Ok((join(&parts)?, draftable))
    }

    /// Decodes a batch: whole, or for recurrent models in parts with equally many tokens of each sequence.
    fn decode_parts(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        mut observer: Option<&mut Observer<'_>>,
    ) -> Result<Stepped<E::Run>, ExecError> {
        batch.keys()?;
        if self.cells.states.is_none() {
            let (logits, run) = self.decode_part(batch, others, observer)?;
            let whole = Draftable {
                run,
                tokens: (0..batch.tokens.len()).collect(),
                rows: (0..batch.output_rows.len()).collect(),
            };
            return Ok((logits, vec![whole]));
        }
        let mut done = Vec::new();
        let mut draftable = Vec::new();
        for part in parts(&batch.seq_ids) {
            let tokens = part.tokens;
            let (part, rows) = batch.part(&tokens);
            let (logits, run) = self.decode_part(&part, others, observer.as_deref_mut())?;
            done.push((logits, rows.clone()));
            draftable.push(Draftable { run, tokens, rows });
        }
        Ok((join(&done)?, draftable))
    }

    /// Decodes a batch that the model can take as it is.
    fn decode_part(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        observer: Option<&mut Observer<'_>>,
    ) -> Result<(Tensor, E::Run), ExecError> {
        let tokens = batch.keys()?;
        let seqs = batch.seqs();
        let placed = self.cells.place(&tokens, &seqs)?;
        let cells = &self.cells;
        let sizes = sizes(&self.config, cells, batch, seqs.len());
        let mut host = BatchInputs {
            batch,
            tokens: &tokens,
            full: &cells.full,
            rows: &placed.rows,
            windowed: cells.windowed.as_ref().zip(placed.rows_windowed.as_deref()),
            states: &placed.states,
            mask_values: self.executor.interface().mask_values,
            others,
            observer,
        };
        let mut run = self.executor.begin(&sizes);
        let mut outputs = self.executor.run_phase(&mut run, &mut host)?;
        let logits = outputs.remove(LOGITS).ok_or_else(|| no_output(LOGITS))?;
        Ok((logits, run))
    }
}

/// The logits of a step, and the parts of the batch that may be drafted for.
type Stepped<R> = (Tensor, Vec<Draftable<R>>);

const LOGITS: &str = "logits";

fn no_output(name: &str) -> ExecError {
    ExecError::MissingOutput {
        name: name.to_owned(),
    }
}

/// The output of the block that takes the tokens so many ahead.
fn draft_name(ahead: u32) -> String {
    match ahead {
        1 => "draft_logits".to_owned(),
        _ => format!("draft_logits_{ahead}"),
    }
}

/// The values of the symbols for a batch whose tokens have their cells.
fn sizes(config: &SessionConfig, cells: &Cells, batch: &Batch, n_seqs: usize) -> Bindings {
    let n = |n: usize| n as u64;
    let n_tokens = batch.tokens.len();
    let n_kv_swa = cells.windowed.as_ref().map_or(0, KvCells::n_kv);
    Bindings::default()
        .with(Symbol::NTokens, n(n_tokens))
        .with(Symbol::NKv, n(cells.full.n_kv()))
        .with(Symbol::NKvSwa, n(n_kv_swa))
        .with(Symbol::NCtx, n(config.n_ctx))
        .with(Symbol::NCtxSwa, n(config.n_ctx_swa))
        .with(Symbol::NSeqs, n(n_seqs))
        .with(Symbol::NSeqTokens, n(n_tokens / n_seqs.max(1)))
        .with(Symbol::NSeqMax, n(config.n_seq_max))
        .with(Symbol::NOutputs, n(batch.output_rows.len()))
}

/// The logits of a batch from those of its parts, each with the output rows that they are.
fn join(parts: &[(Tensor, Vec<usize>)]) -> Result<Tensor, ExecError> {
    let n_vocab = parts.first().map_or(0, |(logits, _)| logits.dims()[0]);
    let n_rows: usize = parts.iter().map(|(_, rows)| rows.len()).sum();
    let mut out = vec![0.0; n_vocab * n_rows];
    for (logits, rows) in parts {
        let logits = logits.reals()?;
        for (i, row) in rows.iter().enumerate() {
            out[row * n_vocab..][..n_vocab].copy_from_slice(&logits[i * n_vocab..][..n_vocab]);
        }
    }
    Tensor::reals_of([n_vocab, n_rows, 1, 1], out)
}
