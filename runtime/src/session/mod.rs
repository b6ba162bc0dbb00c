mod batch;
mod blocks;
mod cells;
mod checkpoint;
mod config;
mod inputs;
mod kv_cells;
mod logical;
mod parts;
mod prefix;
mod rewind;
mod saved;
mod sequences;

#[cfg(test)]
mod tests;

use tpc_ir::op::InputKind;
use tpc_ir::stage::Executable;
use tpc_ir::{Bindings, Symbol, TensorType, Verified};

pub use batch::{Batch, Logits, TokenPos};
pub use config::SessionConfig;
pub use kv_cells::KvCells;
pub use prefix::{Prefix, PrefixLayout};
pub use saved::{SaveError, SequenceText};

use crate::best::Predicted;
use crate::error::ExecError;
use crate::executor::{Executor, Outputs};
use crate::profile::KernelTime;
use crate::reference::{Inputs, Interpreter, Observer, Options};
use crate::run::BatchRun;
use crate::tensor::Tensor;
use crate::weights::WeightSource;
use cells::Cells;
use checkpoint::Checkpoint;
use inputs::{BatchInputs, NextTokens, missing};
use logical::LogicalState;
use sequences::{is_one_part, parts};

/// A part of the last batch. Drafts can continue from it.
#[derive(Clone, Debug)]
struct Draftable {
    run: BatchRun,
    part: Option<DraftPart>,
}

#[derive(Clone, Debug)]
struct DraftPart {
    tokens: Vec<usize>,
    /// Output row of the batch for each output row of the part.
    rows: Vec<usize>,
}

#[derive(Clone, Debug)]
struct Last {
    parts: Vec<Draftable>,
    tokens: usize,
}

impl Last {
    const fn none() -> Last {
        Last {
            parts: Vec::new(),
            tokens: 0,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    Output(usize),
    Joined,
}

#[derive(Clone, Debug, Default)]
struct Work {
    keys: Vec<TokenPos>,
    seqs: Vec<u32>,
}

/// An [`Executor`] with the cells of its KV caches and recurrent states. A failed batch or draft leaves the session
/// unchanged.
///
/// The model's output is named `logits` or `embeddings`. Its masks hold distances if an attention op uses ALiBi.
///
/// A model with recurrent states runs a batch in parts with the same number of tokens per sequence. A sequence keeps
/// its cell until its removal.
///
/// A model whose tokens also attend to later tokens ([`InputKind::MaskBatch`]) has no caches: a batch holds whole
/// sequences and does not depend on other batches.
///
/// After a batch of the same form, [`Self::step`] does not allocate if the executor does not.
///
/// If a model drafts ([`InputKind::NextTokens`]), [`Self::decode`] does not run its draft blocks. [`Self::draft`] runs
/// the draft blocks when their input tokens are known.
#[derive(Clone, Debug)]
pub struct Session<E: Executor + ?Sized> {
    executor: Box<E>,
    config: SessionConfig,
    cells: Cells,
    last: Last,
    pending: Last,
    outputs: Outputs,
    logits: usize,
    /// Output index of each draft block.
    drafts: Vec<usize>,
    joined: Option<Tensor>,
    work: Work,
    /// The model's states, or the reason why they are unknown.
    states: Result<Vec<LogicalState>, ExecError>,
    checkpoints: Vec<Checkpoint>,
    /// Sequences with the first position whose cells do not have the bits of a computed text.
    shifted: Vec<(u32, u64)>,
}

/// A session on the reference executor.
pub type ReferenceSession<'g> = Session<Interpreter<'g>>;

impl<'g> Session<Interpreter<'g>> {
    /// Returns a session on the reference executor, with empty caches and states.
    ///
    /// # Errors
    /// Returns the errors of [`Self::with_executor`] and [`Interpreter::new`].
    pub fn new<S: Executable>(
        graph: &'g Verified<S>,
        weights: &dyn WeightSource,
        config: SessionConfig,
    ) -> Result<Self, ExecError> {
        let executor = Interpreter::new(graph, weights, Options::default())?;
        Session::with_executor(Box::new(executor), config)
    }
}

impl<E: Executor + ?Sized> Session<E> {
    /// Returns a session with empty caches and states.
    ///
    /// # Errors
    /// Returns [`ExecError::MissingOutput`] if the model has neither the output `logits` nor `embeddings`.
    pub fn with_executor(executor: Box<E>, config: SessionConfig) -> Result<Session<E>, ExecError> {
        let interface = executor.interface();
        let config = config.in_units(interface.cell_unit);
        let result = interface.output(LOGITS);
        let result = result.or_else(|| interface.output(EMBEDDINGS));
        let logits = result.ok_or_else(|| no_output(LOGITS))?;
        let drafts = (1..).map_while(|ahead| interface.output(&draft_name(ahead)));
        Ok(Session {
            config,
            cells: Cells::new(&config, interface.recurrent),
            last: Last::none(),
            pending: Last::none(),
            outputs: Outputs::new(interface),
            logits,
            drafts: drafts.collect(),
            joined: None,
            work: Work::default(),
            states: LogicalState::of(&interface.states),
            checkpoints: Vec::new(),
            shifted: Vec::new(),
            executor,
        })
    }

    /// Returns the executor.
    pub const fn executor(&self) -> &E {
        &self.executor
    }

    /// Returns kernel times since the last call; empty without profiling.
    pub fn take_profile(&mut self) -> Vec<KernelTime> {
        self.executor.take_profile()
    }

    /// Returns the configuration, with caches of whole [units](tpc_ir::Graph::cell_unit) of the program.
    pub const fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Returns the number of draft blocks, one per drafted token.
    pub const fn n_drafts(&self) -> usize {
        self.drafts.len()
    }

    /// Decodes a batch and returns the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// # Errors
    /// Returns an error if the batch is malformed, the cache is full, or the program cannot run. The session is then
    /// unchanged.
    pub fn decode(&mut self, batch: &Batch) -> Result<Tensor, ExecError> {
        self.step(batch).cloned()
    }

    /// Decodes as [`Self::decode`] without copying the logits, which stay until the next step.
    pub fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError> {
        let answer =
            self.transact(|s| s.decode_parts(batch, &mut |kind, _| Err(missing(kind)), None))?;
        self.answer(answer)
    }

    /// Decodes as [`Self::step`]. If the executor can, it returns only the `wanted` largest logits of each output row.
    ///
    /// # Errors
    /// Returns the errors of [`Self::decode`].
    pub fn step_best(&mut self, batch: &Batch, wanted: usize) -> Result<Predicted<'_>, ExecError> {
        let mut others = |kind: &InputKind, _: &TensorType| Err(missing(kind));
        let answer = self.transact(|s| {
            s.outputs.want_best(Some(wanted));
            s.decode_parts(batch, &mut others, None)
        })?;
        match (answer, self.outputs.best()) {
            (Answer::Output(_), Some(best)) => Ok(Predicted::Best(best)),
            _ => self.answer(answer).map(Predicted::All),
        }
    }

    /// Decodes as [`Self::decode`], and passes every tensor to `observer` as it is produced, if the executor keeps
    /// tensors.
    pub fn decode_observed(
        &mut self,
        batch: &Batch,
        observer: &mut Observer<'_>,
    ) -> Result<Tensor, ExecError> {
        let mut others = |kind: &InputKind, _: &TensorType| Err(missing(kind));
        let answer = self.transact(|s| s.decode_parts(batch, &mut others, Some(observer)))?;
        self.answer(answer).cloned()
    }

    /// Decodes as [`Self::decode`]. `others` supplies the inputs that a session does not compute.
    pub fn decode_with(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
    ) -> Result<Tensor, ExecError> {
        let answer = self.transact(|s| s.decode_parts(batch, others, None))?;
        self.answer(answer).cloned()
    }

    /// Drafts further tokens for the last batch. Returns the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// In the first draft, `next` holds the token after each token of the batch. The logits predict the tokens after
    /// `next`. If the model drafts more than one token, draft again with `next` one position further. A draft also
    /// stores the batch's tokens in the draft blocks' caches: for good drafts, draft after every batch.
    ///
    /// # Errors
    /// Returns [`ExecError::NothingToDraft`] before the first batch and after the last draft, [`ExecError::BadBatch`]
    /// if `next` does not have one token per token of the batch, or an error of the program. The session is unchanged
    /// on error.
    pub fn draft(&mut self, next: &[u32]) -> Result<Tensor, ExecError> {
        self.draft_step(next).cloned()
    }

    /// Drafts as [`Self::draft`] without copying the logits, which stay until the next step.
    pub fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError> {
        let n = self.last.tokens;
        if self.last.parts.is_empty() {
            return Err(ExecError::NothingToDraft);
        }
        if next.len() != n {
            return Err(ExecError::BadBatch {
                what: format!("{} next tokens for {n} tokens", next.len()),
            });
        }
        let answer = self.transact(|s| s.draft_parts(next))?;
        self.answer(answer)
    }

    /// Removes a sequence. The sequence may restart at position 0.
    pub fn remove_sequence(&mut self, seq: u32) {
        self.cells.remove_sequence(seq);
        self.checkpoints.retain(|c| c.seq != seq);
        self.shifted.retain(|s| s.0 != seq);
    }

    /// Removes all sequences and clears all states.
    ///
    /// # Errors
    /// Returns the errors of [`Executor::reset_states`]. The sequences are removed even then.
    pub fn clear(&mut self) -> Result<(), ExecError> {
        self.cells.clear();
        self.last.parts.clear();
        self.checkpoints.clear();
        self.shifted.clear();
        self.executor.reset_states()
    }

    fn transact(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Answer, ExecError>,
    ) -> Result<Answer, ExecError> {
        self.cells.begin();
        self.pending.parts.clear();
        self.outputs.want_best(None);
        match step(self) {
            Ok(answer) => {
                self.executor.commit();
                std::mem::swap(&mut self.last, &mut self.pending);
                Ok(answer)
            }
            Err(e) => {
                self.executor.discard();
                self.cells.revert();
                Err(e)
            }
        }
    }

    fn answer(&self, answer: Answer) -> Result<&Tensor, ExecError> {
        let found = match answer {
            Answer::Output(output) => self.outputs.get(output),
            Answer::Joined => self.joined.as_ref(),
        };
        found.ok_or_else(|| no_output(LOGITS))
    }

    fn draft_parts(&mut self, next: &[u32]) -> Result<Answer, ExecError> {
        self.pending.parts.clone_from(&self.last.parts);
        self.pending.tokens = self.last.tokens;
        let mut join = Join::default();
        let mut answer = Answer::Joined;
        for Draftable { run, part } in &mut self.pending.parts {
            let ahead = self.executor.lookahead(run);
            let ahead = ahead.ok_or(ExecError::NothingToDraft)?;
            let mut host = NextTokens {
                tokens: part.as_ref().map(|p| p.tokens.as_slice()),
                next,
            };
            self.executor.run_phase(run, &mut host, &mut self.outputs)?;
            let output = self.drafts.get((ahead as usize).wrapping_sub(1));
            let output = *output.ok_or_else(|| no_output(&draft_name(ahead)))?;
            match part {
                None => answer = Answer::Output(output),
                Some(part) => join.add(self.outputs.get(output), &part.rows)?,
            }
        }
        join.finish(&mut self.joined)?;
        Ok(answer)
    }

    /// Decodes a batch: whole, or in parts with the same number of tokens per sequence.
    fn decode_parts(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        mut observer: Option<&mut Observer<'_>>,
    ) -> Result<Answer, ExecError> {
        batch.write_keys(&mut self.work.keys)?;
        self.pending.tokens = batch.tokens.len();
        if self.cells.states.is_none() || is_one_part(&batch.seq_ids) {
            let run = self.decode_part(batch, others, observer)?;
            self.pending.parts.push(Draftable { run, part: None });
            return Ok(Answer::Output(self.logits));
        }
        self.outputs.want_best(None);
        let mut join = Join::default();
        for part in parts(&batch.seq_ids) {
            let tokens = part.tokens;
            let (part, rows) = batch.part(&tokens);
            part.write_keys(&mut self.work.keys)?;
            let run = self.decode_part(&part, others, observer.as_deref_mut())?;
            join.add(self.outputs.get(self.logits), &rows)?;
            let part = Some(DraftPart { tokens, rows });
            self.pending.parts.push(Draftable { run, part });
        }
        join.finish(&mut self.joined)?;
        Ok(Answer::Joined)
    }

    fn decode_part(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        observer: Option<&mut Observer<'_>>,
    ) -> Result<BatchRun, ExecError> {
        let Work { keys, seqs } = &mut self.work;
        batch.write_seqs(seqs);
        if !self.executor.interface().both_ways {
            self.cells.place(keys, seqs)?;
        }
        let cells = &self.cells;
        let sizes = sizes(&self.config, cells, batch, seqs.len());
        let mut host = BatchInputs {
            batch,
            tokens: keys,
            cells,
            mask_values: self.executor.interface().mask_values,
            others,
            observer,
        };
        let mut run = BatchRun::new(&sizes);
        self.executor
            .run_phase(&mut run, &mut host, &mut self.outputs)?;
        Ok(run)
    }
}

const LOGITS: &str = "logits";
/// The output of a model that computes embeddings instead of logits.
const EMBEDDINGS: &str = "embeddings";

fn no_output(name: &str) -> ExecError {
    ExecError::MissingOutput {
        name: name.to_owned(),
    }
}

/// Returns the output name of the block that reads the tokens `ahead` positions later.
fn draft_name(ahead: u32) -> String {
    match ahead {
        1 => "draft_logits".to_owned(),
        _ => format!("draft_logits_{ahead}"),
    }
}

fn sizes(config: &SessionConfig, cells: &Cells, batch: &Batch, n_seqs: usize) -> Bindings {
    let n = |n: usize| n as u64;
    let n_tokens = batch.tokens.len();
    let n_kv_swa = cells.windowed.as_ref().map_or(0, KvCells::n_kv);
    Bindings::default()
        .in_units(config.cell_unit.0)
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

#[derive(Debug, Default)]
struct Join {
    n_vocab: usize,
    parts: Vec<(Vec<f64>, Vec<usize>)>,
}

impl Join {
    fn add(&mut self, logits: Option<&Tensor>, rows: &[usize]) -> Result<(), ExecError> {
        let logits = logits.ok_or_else(|| no_output(LOGITS))?;
        self.n_vocab = logits.dims()[0];
        self.parts.push((logits.reals()?.to_vec(), rows.to_vec()));
        Ok(())
    }

    /// Writes the logits of all parts, if any, to `joined`.
    fn finish(self, joined: &mut Option<Tensor>) -> Result<(), ExecError> {
        let n = self.n_vocab;
        let rows: usize = self.parts.iter().map(|(_, rows)| rows.len()).sum();
        let mut out = vec![0.0; n * rows];
        for (logits, rows) in &self.parts {
            for (row, logits) in rows.iter().zip(logits.chunks_exact(n.max(1))) {
                out[row * n..][..n].copy_from_slice(logits);
            }
        }
        if !self.parts.is_empty() {
            *joined = Some(Tensor::reals_of([n, rows, 1, 1], out)?);
        }
        Ok(())
    }
}
