//! A session: a language model that turns batches of tokens into logits.

use tpc_ir::op::{InputKind, Op};
use tpc_ir::{Bindings, Graph, Output, Symbol, TensorType, Window};

use super::batch::{Batch, KvCells, MaskValues};
use super::error::ExecError;
use super::interp::{Inputs, Interpreter, Observer, Progress};
use super::ops::Options;
use super::sequences::{StateCells, parts};
use super::tensor::Tensor;
use super::weights::WeightSource;

/// How a session is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionConfig {
    /// Cells of the KV cache.
    pub n_ctx: usize,
    /// Cells of the KV cache of layers with a sliding window; about window + tokens of a batch per sequence.
    pub n_ctx_swa: usize,
    /// What these layers attend to; `None` when there are none.
    pub window: Option<Window>,
    /// Sequences that recurrent states have cells for.
    pub n_seq_max: usize,
    /// How to compute.
    pub options: Options,
}

impl SessionConfig {
    /// `n_ctx` cells, no sliding window, and recurrent states for one sequence.
    pub fn new(n_ctx: usize) -> SessionConfig {
        SessionConfig {
            n_ctx,
            n_ctx_swa: 0,
            window: None,
            n_seq_max: 1,
            options: Options::default(),
        }
    }

    /// The same with layers that have this window and a cache of `n_ctx_swa` cells.
    #[must_use]
    pub const fn with_window(mut self, window: Window, n_ctx_swa: usize) -> SessionConfig {
        (self.window, self.n_ctx_swa) = (Some(window), n_ctx_swa);
        self
    }

    /// The same with recurrent states for `n_seq_max` sequences.
    #[must_use]
    pub const fn with_sequences(mut self, n_seq_max: usize) -> SessionConfig {
        self.n_seq_max = n_seq_max;
        self
    }
}

/// The cells of both caches and of the recurrent states.
#[derive(Clone, Debug)]
struct Cells {
    full: KvCells,
    swa: Option<KvCells>,
    /// `None` when the graph has no recurrent states.
    states: Option<StateCells>,
}

/// A part of a batch that tokens may be drafted for.
#[derive(Clone, Debug)]
struct Unfinished {
    run: Progress,
    /// Its tokens, as indices into the batch.
    tokens: Vec<usize>,
    /// Which output row of the batch each of its own is.
    rows: Vec<usize>,
}

/// An [`Interpreter`] with the cells of its KV cache and of its recurrent states.
///
/// The graph's output is named `logits`. Its masks hold distances when an attention op of the graph uses ALiBi.
///
/// A graph with recurrent states asks for the cells of its sequences ([`InputKind::StateCells`]) and is run on parts
/// of a batch that have equally many tokens of each sequence. A sequence has its cell from its first token until it is
/// forgotten.
///
/// A graph that guesses further tokens ahead ([`InputKind::NextTokens`]) decodes without: the guesses are
/// [drafted](Self::draft) afterwards, when the tokens that they take are known.
#[derive(Clone, Debug)]
pub struct Session<'g> {
    interpreter: Interpreter<'g>,
    config: SessionConfig,
    cells: Cells,
    mask_values: MaskValues,
    /// The parts of the last batch.
    unfinished: Vec<Unfinished>,
}

impl<'g> Session<'g> {
    /// A session with empty caches and states.
    ///
    /// # Errors
    /// [`ExecError::MissingOutput`] when the graph has no `logits`, and those of [`Interpreter::new`].
    pub fn new(
        graph: &'g Graph,
        weights: &dyn WeightSource,
        config: SessionConfig,
    ) -> Result<Session<'g>, ExecError> {
        let has = |wanted: &dyn Fn(&Op) -> bool| graph.insts().any(|(_, i)| wanted(&i.op));
        let mask_values = if has(&|op| matches!(op, Op::FlashAttn(a) if a.max_bias > 0.0)) {
            MaskValues::Distance
        } else {
            MaskValues::Zero
        };
        let is_logits = |o: &Output| matches!(o, Output::Named(name, _) if name == LOGITS);
        if !graph.outputs.iter().any(is_logits) {
            return Err(no_logits());
        }
        let recurrent = has(&|op| matches!(op, Op::Input(i) if i.kind == InputKind::StateCells));
        let swa = config
            .window
            .map(|w| KvCells::new(config.n_ctx_swa, Some(w)));
        Ok(Session {
            interpreter: Interpreter::new(graph, weights, config.options)?,
            config,
            cells: Cells {
                full: KvCells::new(config.n_ctx, None),
                swa,
                states: recurrent.then(|| StateCells::new(config.n_seq_max)),
            },
            mask_values,
            unfinished: Vec::new(),
        })
    }

    /// The interpreter, for its statistics and states.
    pub const fn interpreter(&self) -> &Interpreter<'g> {
        &self.interpreter
    }

    /// How the session is set up.
    pub const fn config(&self) -> &SessionConfig {
        &self.config
    }

    /// Decodes a batch: the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// # Errors
    /// When the batch is malformed, the cache is full, or the graph cannot run; the session is then as it was.
    pub fn decode(&mut self, batch: &Batch) -> Result<Tensor, ExecError> {
        self.decode_with(batch, &mut |kind, _| Err(missing(kind)))
    }

    /// [`Self::decode`], showing every tensor to `observe` as it is produced.
    ///
    /// # Errors
    /// The same.
    pub fn decode_observed(
        &mut self,
        batch: &Batch,
        observe: &mut Observer<'_>,
    ) -> Result<Tensor, ExecError> {
        self.decode_all(batch, &mut |kind, _| Err(missing(kind)), Some(observe))
    }

    /// [`Self::decode`], asking `others` for inputs that are none of the usual ones.
    ///
    /// # Errors
    /// The same, and those of `others`.
    pub fn decode_with(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
    ) -> Result<Tensor, ExecError> {
        self.decode_all(batch, others, None)
    }

    fn decode_all(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        observe: Option<&mut Observer<'_>>,
    ) -> Result<Tensor, ExecError> {
        if self.cells.states.is_none() {
            let (logits, run) = self.decode_part(batch, others, observe)?;
            self.unfinished = vec![Unfinished {
                run,
                tokens: (0..batch.tokens.len()).collect(),
                rows: (0..batch.output_rows.len()).collect(),
            }];
            return Ok(logits);
        }
        batch.keys()?;
        let before = self.clone();
        let logits = self.decode_parts(batch, others, observe);
        if logits.is_err() {
            *self = before;
        }
        logits
    }

    /// Guesses further tokens of the last batch: the logits of its output rows, `[n_vocab, n_outputs]`.
    ///
    /// At first `next` are the tokens that follow each token of the batch, and what is guessed are those that follow
    /// these. Where the graph guesses more than one token, the session may draft again, with `next` those after, and so
    /// on. What a batch's tokens are to later drafts is stored by drafting: for the drafts to be good, draft after every
    /// batch.
    ///
    /// # Errors
    /// [`ExecError::NothingToDraft`] before the first batch and after the last guess, [`ExecError::BadBatch`] when there
    /// is not one token for each of the batch, and when the graph cannot run; the session is then as it was.
    pub fn draft(&mut self, next: &[u32]) -> Result<Tensor, ExecError> {
        let n: usize = self.unfinished.iter().map(|u| u.tokens.len()).sum();
        if !self.unfinished.is_empty() && next.len() != n {
            return Err(ExecError::BadBatch {
                what: format!("{} next tokens for {n} tokens", next.len()),
            });
        }
        let before = self.clone();
        let logits = self.draft_parts(next);
        if logits.is_err() {
            *self = before;
        }
        logits
    }

    fn draft_parts(&mut self, next: &[u32]) -> Result<Tensor, ExecError> {
        let mut unfinished = std::mem::take(&mut self.unfinished);
        let mut done = Vec::new();
        for Unfinished { run, tokens, rows } in &mut unfinished {
            let ahead = self.interpreter.ahead(run);
            let ahead = ahead.ok_or(ExecError::NothingToDraft)?;
            let mut inputs = |kind: &InputKind, _: &TensorType| match kind {
                InputKind::NextTokens(_) => indices(tokens.iter().map(|&t| i64::from(next[t]))),
                kind => Err(missing(kind)),
            };
            let mut outputs = self.interpreter.advance(run, &mut inputs, None)?;
            let name = draft_name(ahead);
            let logits = outputs
                .remove(&name)
                .ok_or(ExecError::MissingOutput { name })?;
            done.push((logits, rows.clone()));
        }
        self.unfinished = unfinished;
        joined(&done)
    }

    /// Decodes parts with equally many tokens of each sequence one after another.
    fn decode_parts(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        mut observe: Option<&mut Observer<'_>>,
    ) -> Result<Tensor, ExecError> {
        let mut done = Vec::new();
        let mut unfinished = Vec::new();
        for part in parts(&batch.seq_ids) {
            let tokens = part.tokens;
            let (part, rows) = batch.part(&tokens);
            let (logits, run) = self.decode_part(&part, others, observe.as_deref_mut())?;
            done.push((logits, rows.clone()));
            unfinished.push(Unfinished { run, tokens, rows });
        }
        self.unfinished = unfinished;
        joined(&done)
    }

    /// Decodes a batch that the graph can take as it is.
    fn decode_part(
        &mut self,
        batch: &Batch,
        others: &mut Inputs<'_>,
        observe: Option<&mut Observer<'_>>,
    ) -> Result<(Tensor, Progress), ExecError> {
        let keys = batch.keys()?;
        let mut cells = self.cells.clone();
        let rows = cells.full.place(&keys)?;
        let rows_swa = match &mut cells.swa {
            Some(swa) => Some(swa.place(&keys)?),
            None => None,
        };
        let seqs = batch.seqs();
        let states = match &mut cells.states {
            Some(states) => states.place(&seqs)?,
            None => Vec::new(),
        };
        let n_kv_swa = cells.swa.as_ref().map_or(0, KvCells::n_kv);
        let n = |n: usize| n as u64;
        let bindings = Bindings::default()
            .with(Symbol::NTokens, n(keys.len()))
            .with(Symbol::NKv, n(cells.full.n_kv()))
            .with(Symbol::NKvSwa, n(n_kv_swa))
            .with(Symbol::NCtx, n(self.config.n_ctx))
            .with(Symbol::NCtxSwa, n(self.config.n_ctx_swa))
            .with(Symbol::NSeqs, n(seqs.len()))
            .with(Symbol::NSeqTokens, n(keys.len() / seqs.len().max(1)))
            .with(Symbol::NSeqMax, n(self.config.n_seq_max))
            .with(Symbol::NOutputs, n(batch.output_rows.len()));
        let mask_values = self.mask_values;
        let mut inputs = |kind: &InputKind, ty: &TensorType| match kind {
            InputKind::Tokens => indices(batch.tokens.iter().map(|&t| i64::from(t))),
            InputKind::Positions => indices(batch.positions.iter().map(|&p| i64::from(p))),
            // Text has no height or width: a token's place in time counts for all three, and the last position is 0.
            InputKind::PositionsMrope => indices([1, 1, 1, 0].into_iter().flat_map(|times| {
                let positions = batch.positions.iter();
                positions.map(move |&p| times * i64::from(p))
            })),
            InputKind::CacheRows => indices(rows.iter().map(|&r| r as i64)),
            InputKind::CacheRowsSwa => match &rows_swa {
                Some(rows) => indices(rows.iter().map(|&r| r as i64)),
                None => others(kind, ty),
            },
            InputKind::Mask => cells.full.mask(&keys, mask_values),
            InputKind::MaskSwa => match &cells.swa {
                Some(swa) => swa.mask(&keys, mask_values),
                None => others(kind, ty),
            },
            InputKind::OutputRows => indices(batch.output_rows.iter().map(|&r| i64::from(r))),
            InputKind::StateCells => indices(states.iter().map(|s| s.cell as i64)),
            InputKind::StateKept => {
                let kept = states.iter().map(|s| if s.starts { 0.0 } else { 1.0 });
                Tensor::reals_of([1, states.len(), 1, 1], kept.collect())
            }
            InputKind::Temperature(t) => {
                let factors = batch.positions.iter().map(|&p| f64::from(t.at(p)));
                Tensor::reals_of([1, 1, batch.positions.len(), 1], factors.collect())
            }
            InputKind::NextTokens(_) | InputKind::Other(_) => others(kind, ty),
        };
        let mut run = self.interpreter.begin(&bindings);
        let mut outputs = self.interpreter.advance(&mut run, &mut inputs, observe)?;
        let logits = outputs.remove(LOGITS).ok_or_else(no_logits)?;
        self.cells = cells;
        Ok((logits, run))
    }

    /// Forgets a sequence; its cells are free and it may start again at position 0.
    pub fn forget(&mut self, seq: u32) {
        let Cells { full, swa, states } = &mut self.cells;
        full.forget(seq);
        if let Some(swa) = swa {
            swa.forget(seq);
        }
        if let Some(states) = states {
            states.forget(seq);
        }
    }

    /// Forgets all sequences and the content of all states.
    pub fn clear(&mut self) {
        let Cells { full, swa, states } = &mut self.cells;
        full.clear();
        if let Some(swa) = swa {
            swa.clear();
        }
        if let Some(states) = states {
            states.clear();
        }
        self.interpreter.reset_states();
        self.unfinished.clear();
    }
}

const LOGITS: &str = "logits";

fn no_logits() -> ExecError {
    ExecError::MissingOutput {
        name: LOGITS.to_owned(),
    }
}

/// The output of the block that takes the tokens so many ahead.
fn draft_name(ahead: u32) -> String {
    match ahead {
        1 => "draft_logits".to_owned(),
        _ => format!("draft_logits_{ahead}"),
    }
}

fn missing(kind: &InputKind) -> ExecError {
    ExecError::MissingInput {
        input: format!("{kind:?}"),
    }
}

/// The logits of a batch of those of its parts, each with the rows that they are.
fn joined(done: &[(Tensor, Vec<usize>)]) -> Result<Tensor, ExecError> {
    let n_vocab = done.first().map_or(0, |(logits, _)| logits.dims()[0]);
    let n_rows: usize = done.iter().map(|(_, rows)| rows.len()).sum();
    let mut out = vec![0.0; n_vocab * n_rows];
    for (logits, rows) in done {
        let logits = logits.reals()?;
        for (i, row) in rows.iter().enumerate() {
            out[row * n_vocab..][..n_vocab].copy_from_slice(&logits[i * n_vocab..][..n_vocab]);
        }
    }
    Tensor::reals_of([n_vocab, n_rows, 1, 1], out)
}

fn indices(values: impl Iterator<Item = i64>) -> Result<Tensor, ExecError> {
    let values: Vec<i64> = values.collect();
    Tensor::ints_of([values.len(), 1, 1, 1], values)
}

#[cfg(test)]
mod tests;
