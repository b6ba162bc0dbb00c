use tpc_ir::{Bindings, Op, Window};

use super::Session;
use super::batch::TokenPos;
use super::checkpoint::Checkpoint;
use super::logical::{LogicalState, known_states};
use crate::error::ExecError;
use crate::executor::Executor;
use crate::quant::{can_dequantise, can_quantise, dequantise, quantise};
use crate::reference::{OpContext, Options, eval};
use crate::states::{CellKind, Rotation};
use crate::tensor::{Data, Shape, Tensor};

const TURNED: usize = 64;

impl<E: Executor + ?Sized> Session<E> {
    /// Returns the position of a sequence's next token.
    pub fn next_position(&self, seq: u32) -> u64 {
        self.cells.full.next(seq)
    }

    /// True if sequences have recurrent states, so that a rewind needs a [`Self::checkpoint`].
    pub const fn is_recurrent(&self) -> bool {
        self.cells.states.is_some()
    }

    /// Keeps a sequence's recurrent states, if any, so that the sequence can go back to its last token. A sequence has
    /// at most one checkpoint.
    ///
    /// # Errors
    /// Returns [`ExecError::NoStates`] if the executor does not provide its states.
    pub fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError> {
        let Some(cell) = self.cells.states.as_ref().and_then(|s| s.cell(seq)) else {
            return Ok(());
        };
        let known = self.checkpoints.iter().position(|c| c.seq == seq);
        let mut kept = known.map_or_else(Checkpoint::default, |i| self.checkpoints.swap_remove(i));
        (kept.seq, kept.pos) = (seq, self.next_position(seq));
        kept.bytes.clear();
        self.read_states(cell, &mut kept.bytes)?;
        self.checkpoints.push(kept);
        Ok(())
    }

    /// Appends the recurrent states in `cell`.
    pub(super) fn read_states(&self, cell: usize, out: &mut Vec<u8>) -> Result<(), ExecError> {
        for state in recurrent(known_states(&self.states)?) {
            let at = out.len();
            out.resize(at + state.cell_bytes(), 0);
            state.read(&*self.executor, cell, &mut out[at..])?;
        }
        Ok(())
    }

    /// True if a sequence can go back to its first `pos` tokens.
    pub fn can_truncate(&self, seq: u32, pos: u64) -> bool {
        self.refuses_truncation(seq, pos).is_none()
    }

    /// Returns the reason why a sequence cannot go back, if any.
    fn refuses_truncation(&self, seq: u32, pos: u64) -> Option<&'static str> {
        let windowed = self.cells.windowed.as_ref();
        let at = |c: &Checkpoint| c.seq == seq && c.pos == pos;
        if pos == 0 || pos >= self.next_position(seq) {
            None
        } else if windowed.is_some_and(|cells| !cells.can_truncate(seq, pos)) {
            Some(
                "the sliding-window cache no longer holds all tokens that this position attends to",
            )
        } else if self.is_recurrent() && !self.checkpoints.iter().any(at) {
            Some("recurrent states do not have a checkpoint at this position")
        } else {
            None
        }
    }

    /// Removes a sequence's tokens from position `pos` on. The next token gets this position. A sequence can go back
    ///
    /// - to its start, always;
    /// - with recurrent states, to its [checkpoint](Self::checkpoint);
    /// - with a window, if its caches hold all tokens that the token at `pos` sees.
    ///
    /// # Errors
    /// Returns [`ExecError::CannotRewind`] if the sequence cannot go back to `pos`. The session is then unchanged.
    pub fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError> {
        if pos >= self.next_position(seq) {
            return Ok(());
        }
        if let Some(why) = self.refuses_truncation(seq, pos) {
            let why = why.to_owned();
            return Err(ExecError::CannotRewind { seq, pos, why });
        }
        if pos == 0 {
            self.remove_sequence(seq);
            return Ok(());
        }
        let at = |c: &&Checkpoint| c.seq == seq && c.pos == pos;
        let cell = self.cells.states.as_ref().and_then(|s| s.cell(seq));
        if let (Some(cell), Some(kept)) = (cell, self.checkpoints.iter().find(at)) {
            let states = known_states(&self.states)?;
            write_states(states, &mut *self.executor, cell, &kept.bytes)?;
        }
        self.checkpoints.retain(|c| c.seq != seq || c.pos <= pos);
        self.shifted.retain(|&(s, from)| s != seq || from < pos);
        self.cells.full.truncate(seq, pos);
        if let Some(cells) = &mut self.cells.windowed {
            cells.truncate(seq, pos);
        }
        Ok(())
    }

    /// Returns an error with the reason if [`Self::shift`] is not possible.
    fn refuses_shift(&self, seq: u32, from: u64, n: u64) -> Result<(), String> {
        if self.is_recurrent() {
            return Err("recurrent states cannot remove single tokens".into());
        }
        match (self.config.window, &self.cells.windowed) {
            (Some(Window::Chunks(_)), _) => {
                return Err("with chunked attention, tokens cannot move between chunks".into());
            }
            (Some(w), Some(cells)) => {
                let next = self.next_position(seq).saturating_sub(n);
                if from > 0 && cells.has_lost(seq) && w.reaches(next, from - 1) {
                    return Err(
                        "the sliding-window cache no longer holds the tokens to keep".into(),
                    );
                }
            }
            _ => {}
        }
        for state in known_states(&self.states).map_err(|e| e.to_string())? {
            let turned = state.rotations.as_ref().map_err(Clone::clone)?;
            let coded = can_dequantise(state.dtype) && can_quantise(state.dtype);
            if !turned.is_empty() && !coded {
                return Err(format!("keys of type {} cannot be rotated", state.dtype));
            }
        }
        Ok(())
    }

    /// Removes `n` tokens of a sequence from position `from` on and moves later tokens to lower positions (a context
    /// shift). Rotates keys with rotary embeddings back by `n` positions, as llama.cpp does.
    ///
    /// The result differs from an evaluation of the shorter text: later values still depend on the removed tokens.
    ///
    /// # Errors
    /// Returns [`ExecError::CannotRewind`] if the model does not support the shift, [`ExecError::NoStates`] if the
    /// executor does not provide its states. The session is then unchanged.
    pub fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError> {
        let cannot = |why| ExecError::CannotRewind {
            seq,
            pos: from,
            why,
        };
        let next = self.next_position(seq);
        if from.checked_add(n).is_none_or(|end| end > next) {
            return Err(cannot(format!("the sequence has {next} tokens")));
        }
        self.refuses_shift(seq, from, n).map_err(cannot)?;
        if n == 0 {
            return Ok(());
        }
        let states = known_states(&self.states)?;
        for state in states.iter().filter(|s| is_turned(s)) {
            state.check(&*self.executor)?;
        }
        // The cells differ even if an error ends the rotation.
        self.shifted.push((seq, from));
        for state in states.iter().filter(|s| is_turned(s)) {
            let cells = match (state.kind, &self.cells.windowed) {
                (CellKind::Windowed, Some(cells)) => cells.held(),
                _ => self.cells.full.held(),
            };
            let moved = |c: &Option<TokenPos>| {
                c.is_some_and(|c| c.seq == seq && u64::from(c.pos) >= from + n)
            };
            let cells = cells.iter().enumerate().filter(|(_, c)| moved(c));
            let cells: Vec<usize> = cells.map(|(i, _)| i).collect();
            for cells in cells.chunks(TURNED) {
                turn(&mut *self.executor, state, cells, n)?;
            }
        }
        self.cells.full.shift(seq, from, n);
        if let Some(cells) = &mut self.cells.windowed {
            cells.shift(seq, from, n);
        }
        Ok(())
    }
}

fn recurrent(states: &[LogicalState]) -> impl Iterator<Item = &LogicalState> {
    states.iter().filter(|s| s.kind == CellKind::Sequence)
}

/// Writes a sequence's recurrent states into `cell`.
pub(super) fn write_states<E: Executor + ?Sized>(
    states: &[LogicalState],
    executor: &mut E,
    cell: usize,
    mut bytes: &[u8],
) -> Result<(), ExecError> {
    for state in recurrent(states) {
        let (own, rest) = bytes.split_at(state.cell_bytes());
        state.write(executor, cell, own)?;
        bytes = rest;
    }
    Ok(())
}

fn is_turned(state: &LogicalState) -> bool {
    state.rotations.as_ref().is_ok_and(|r| !r.is_empty())
}

fn turn<E: Executor + ?Sized>(
    executor: &mut E,
    state: &LogicalState,
    cells: &[usize],
    n: u64,
) -> Result<(), ExecError> {
    let ([d, rows], each) = (state.row, state.cell_bytes());
    let mut bytes = vec![0; each * cells.len()];
    state.read_all(executor, cells, &mut bytes)?;
    let mut values = vec![0.0; d * rows * cells.len()];
    dequantise(state.dtype, &bytes, &mut values)?;
    for rotation in state.rotations.iter().flatten() {
        let from = rotation.start as usize;
        let part: Vec<f32> = values
            .chunks_exact(d)
            .flat_map(|r| &r[from..])
            .copied()
            .collect();
        let dims = [d - from, rows, cells.len(), 1];
        let part = Tensor::new(dims, Data::F32(part))?;
        let turned = turned(executor, rotation, &part, n)?;
        let turned = turned.reals()?;
        for (row, turned) in values
            .chunks_exact_mut(d)
            .zip(turned.chunks_exact(d - from))
        {
            let row = row[from..].iter_mut().zip(turned);
            row.for_each(|(to, &v)| *to = v as f32);
        }
    }
    bytes.clear();
    quantise(state.dtype, &values, &mut bytes)?;
    state.write_all(executor, cells, &bytes)
}

/// Rotates keys `[d, heads, cells]` back by `n` positions. Does not scale the keys, which already include YaRN's
/// magnitude.
fn turned<E: Executor + ?Sized>(
    executor: &E,
    rotation: &Rotation,
    keys: &Tensor,
    n: u64,
) -> Result<Tensor, ExecError> {
    let mut rope = rotation.rope.clone();
    rope.attn_factor = match rope.ext_factor == 0.0 {
        true => 1.0,
        false => (1.0 / (1.0 + 0.1 * (1.0 / f64::from(rope.freq_scale)).ln())) as f32,
    };
    let dims = keys.dims();
    let back = i64::try_from(n).map_or(i64::MIN, |n| -n);
    let positions = Tensor::ints_of([dims[2], 1, 1, 1], vec![back; dims[2]])?;
    let factors = match rotation.factors {
        None => None,
        Some(weight) => Some(
            executor
                .weight(weight)?
                .ok_or_else(|| ExecError::NoStates {
                    state: "the frequency factors".into(),
                })?,
        ),
    };
    let operands: Vec<&Tensor> = [keys, &positions].into_iter().chain(&factors).collect();
    let shape = Shape {
        dtype: tpc_ir::DType::F32,
        dims,
    };
    let context = OpContext {
        bindings: &Bindings::default(),
        options: Options::default(),
    };
    let mut out = eval(&Op::Rope(rope), &operands, &[shape], &context)?;
    out.pop().ok_or_else(|| ExecError::Malformed {
        what: "the rotation gave no result".into(),
    })
}
