//! The inputs of a batch, from its tokens and their cells.

use tpc_ir::TensorType;
use tpc_ir::Value;
use tpc_ir::op::InputKind;

use super::batch::{Batch, TokenPos};
use super::kv_cells::KvCells;
use super::sequences::StateCell;
use crate::error::ExecError;
use crate::executor::{Host, MaskValues};
use crate::reference::{Inputs, Observer};
use crate::tensor::Tensor;

/// A batch with the cells that its tokens are stored in: the host of the first phase.
pub(super) struct BatchInputs<'a, 'b, 'c> {
    pub(super) batch: &'a Batch,
    pub(super) tokens: &'a [TokenPos],
    pub(super) full: &'a KvCells,
    /// Per token its row of the caches without a window.
    pub(super) rows: &'a [usize],
    /// The cells of the caches with a window, and per token its row there.
    pub(super) windowed: Option<(&'a KvCells, &'a [usize])>,
    pub(super) states: &'a [StateCell],
    pub(super) mask_values: MaskValues,
    /// Inputs that a session does not know.
    pub(super) others: &'a mut Inputs<'b>,
    pub(super) observer: Option<&'a mut Observer<'c>>,
}

impl Host for BatchInputs<'_, '_, '_> {
    fn input(&mut self, kind: &InputKind, ty: &TensorType) -> Result<Tensor, ExecError> {
        let Batch {
            tokens, positions, ..
        } = self.batch;
        match kind {
            InputKind::Tokens => indices(tokens.iter().map(|&t| i64::from(t))),
            InputKind::Positions => indices(positions.iter().map(|&p| i64::from(p))),
            // Text has no height or width: a token's place in time counts for all three, and the last position is 0.
            InputKind::PositionsMrope => indices([1, 1, 1, 0].into_iter().flat_map(|times| {
                let positions = positions.iter();
                positions.map(move |&p| times * i64::from(p))
            })),
            InputKind::CacheRows => indices(self.rows.iter().map(|&r| r as i64)),
            InputKind::CacheRowsSwa => match self.windowed {
                Some((_, rows)) => indices(rows.iter().map(|&r| r as i64)),
                None => (self.others)(kind, ty),
            },
            InputKind::Mask => self.full.mask(self.tokens, self.mask_values),
            InputKind::MaskSwa => match self.windowed {
                Some((cells, _)) => cells.mask(self.tokens, self.mask_values),
                None => (self.others)(kind, ty),
            },
            InputKind::OutputRows => indices(self.batch.output_rows.iter().map(|&r| i64::from(r))),
            InputKind::StateCells => indices(self.states.iter().map(|s| s.cell as i64)),
            InputKind::StateKept => {
                let kept = self.states.iter().map(|s| if s.starts { 0.0 } else { 1.0 });
                Tensor::reals_of([1, self.states.len(), 1, 1], kept.collect())
            }
            InputKind::Temperature(t) => {
                let factors = positions.iter().map(|&p| f64::from(t.at(p)));
                Tensor::reals_of([1, 1, positions.len(), 1], factors.collect())
            }
            InputKind::NextTokens(_) | InputKind::Other(_) => (self.others)(kind, ty),
        }
    }

    fn produced(&mut self, value: Value, tensor: &Tensor) {
        if let Some(observer) = &mut self.observer {
            observer(value, tensor);
        }
    }
}

/// A vector of indices.
pub(super) fn indices(values: impl Iterator<Item = i64>) -> Result<Tensor, ExecError> {
    let values: Vec<i64> = values.collect();
    Tensor::ints_of([values.len(), 1, 1, 1], values)
}

/// The error for an input that nobody supplies.
pub(super) fn missing(kind: &InputKind) -> ExecError {
    ExecError::MissingInput {
        input: format!("{kind:?}"),
    }
}
