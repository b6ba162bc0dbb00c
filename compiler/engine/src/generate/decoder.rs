use std::ops::Range;

use tpc_runtime::{
    Batch, CellKind, ExecError, Executor, Predicted, Prefix, PrefixLayout, Session, Tensor,
};

/// A model that decodes batches of several sequences: [`Session`], or a deterministic model in tests.
pub trait Decoder {
    /// Decodes a batch. Returns the logits of its output rows, `[n_vocab, n_outputs]`, valid until the next step.
    ///
    /// # Errors
    /// Returns the error of [`Session::step`].
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError>;

    /// Decodes a batch as [`Decoder::step`]. May return only the `wanted` largest logits of each output row.
    ///
    /// # Errors
    /// Returns the error of [`Session::step`].
    fn step_best(&mut self, batch: &Batch, _wanted: usize) -> Result<Predicted<'_>, ExecError> {
        self.step(batch).map(Predicted::All)
    }

    /// Runs the next drafting block on the last batch and returns its logits. `next` has the next token for each token
    /// of the batch.
    ///
    /// # Errors
    /// Returns the error of [`Session::draft_step`].
    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError>;

    /// Returns the number of drafting blocks.
    fn n_drafts(&self) -> usize;

    /// Removes a sequence.
    fn remove_sequence(&mut self, seq: u32);

    /// Returns the length of a sequence, which is the position of its next token.
    fn next_position(&self, seq: u32) -> u64;

    /// True if a sequence can be truncated to `pos` tokens.
    fn can_truncate(&self, seq: u32, pos: u64) -> bool;

    /// Removes the tokens of a sequence from position `pos` on.
    ///
    /// # Errors
    /// Returns the error of [`Session::truncate`].
    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError>;

    /// Saves the recurrent states of a sequence, so that the sequence can be truncated to its current length.
    ///
    /// # Errors
    /// Returns the error of [`Session::checkpoint`].
    fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError>;

    /// Removes `n` tokens of a sequence from position `from` on, and moves later tokens up.
    ///
    /// # Errors
    /// Returns the error of [`Session::shift`].
    fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError>;

    /// Returns the sizes of a prefix's parts; `None` if prefixes cannot be copied.
    fn prefix_layout(&self) -> Option<PrefixLayout> {
        None
    }

    /// Appends the bytes of a sequence's cells at these positions. Returns false if these cells cannot be copied.
    ///
    /// # Errors
    /// Returns the error of [`Session::read_cells`].
    fn read_cells(
        &self,
        _seq: u32,
        _kind: CellKind,
        _positions: Range<u64>,
        _out: &mut Vec<u8>,
    ) -> Result<bool, ExecError> {
        Ok(false)
    }

    /// Appends the bytes of a sequence's recurrent states. Returns false if these states cannot be copied.
    ///
    /// # Errors
    /// Returns the error of [`Session::read_recurrent`].
    fn read_recurrent(&self, _seq: u32, _out: &mut Vec<u8>) -> Result<bool, ExecError> {
        Ok(false)
    }

    /// Gives an empty sequence the tokens of a prefix.
    ///
    /// # Errors
    /// Returns the error of [`Session::restore_prefix`]; [`ExecError::Prefix`] if prefixes cannot be copied.
    fn restore_prefix(&mut self, seq: u32, _prefix: &Prefix<'_>) -> Result<(), ExecError> {
        Err(ExecError::Prefix {
            seq,
            what: "the model does not provide its states".into(),
        })
    }
}

impl<E: Executor + ?Sized> Decoder for Session<E> {
    fn step(&mut self, batch: &Batch) -> Result<&Tensor, ExecError> {
        Session::step(self, batch)
    }

    fn step_best(&mut self, batch: &Batch, wanted: usize) -> Result<Predicted<'_>, ExecError> {
        Session::step_best(self, batch, wanted)
    }

    fn draft_step(&mut self, next: &[u32]) -> Result<&Tensor, ExecError> {
        Session::draft_step(self, next)
    }

    fn n_drafts(&self) -> usize {
        Session::n_drafts(self)
    }

    fn remove_sequence(&mut self, seq: u32) {
        Session::remove_sequence(self, seq);
    }

    fn next_position(&self, seq: u32) -> u64 {
        Session::next_position(self, seq)
    }

    fn can_truncate(&self, seq: u32, pos: u64) -> bool {
        Session::can_truncate(self, seq, pos)
    }

    fn truncate(&mut self, seq: u32, pos: u64) -> Result<(), ExecError> {
        Session::truncate(self, seq, pos)
    }

    fn checkpoint(&mut self, seq: u32) -> Result<(), ExecError> {
        Session::checkpoint(self, seq)
    }

    fn shift(&mut self, seq: u32, from: u64, n: u64) -> Result<(), ExecError> {
        Session::shift(self, seq, from, n)
    }

    fn prefix_layout(&self) -> Option<PrefixLayout> {
        Session::prefix_layout(self)
    }

    fn read_cells(
        &self,
        seq: u32,
        kind: CellKind,
        positions: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<bool, ExecError> {
        Session::read_cells(self, seq, kind, positions, out)
    }

    fn read_recurrent(&self, seq: u32, out: &mut Vec<u8>) -> Result<bool, ExecError> {
        Session::read_recurrent(self, seq, out)
    }

    fn restore_prefix(&mut self, seq: u32, prefix: &Prefix<'_>) -> Result<(), ExecError> {
        Session::restore_prefix(self, seq, prefix)
    }
}
