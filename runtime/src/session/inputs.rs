use tpc_ir::TensorType;
use tpc_ir::Value;
use tpc_ir::op::InputKind;

use super::batch::{Batch, TokenPos};
use super::blocks;
use super::cells::Cells;
use super::sequences::StateCells;
use crate::error::ExecError;
use crate::executor::{Host, MaskValues};
use crate::reference::{Inputs, Observer};
use crate::slot::Slot;
use crate::tensor::Tensor;

pub(super) struct BatchInputs<'a, 'b, 'c> {
    pub(super) batch: &'a Batch,
    pub(super) tokens: &'a [TokenPos],
    pub(super) cells: &'a Cells,
    pub(super) mask_values: MaskValues,
    /// Supplier of inputs that a session does not compute.
    pub(super) others: &'a mut Inputs<'b>,
    pub(super) observer: Option<&'a mut Observer<'c>>,
}

impl BatchInputs<'_, '_, '_> {
    /// Writes the mask of tokens that attend to the tokens of their sequence in the batch, at most `near` positions
    /// away.
    fn batch_mask(&self, near: u32, to: Slot<'_>) -> Result<(), ExecError> {
        let tokens = self.tokens;
        to.rows([tokens.len(), tokens.len()], |i, row| {
            for (to, other) in row.iter_mut().zip(tokens) {
                let distance = other.pos.abs_diff(tokens[i].pos);
                *to = match self.mask_values {
                    _ if other.seq != tokens[i].seq || distance > near => f32::NEG_INFINITY,
                    MaskValues::Zero => 0.0,
                    // Contexts are shorter than 2²⁴ tokens, so f32 is exact.
                    MaskValues::Distance => -(distance as f32),
                };
            }
        })
    }
}

impl Host for BatchInputs<'_, '_, '_> {
    fn input(&mut self, kind: &InputKind, ty: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        let Batch {
            tokens,
            positions,
            output_rows,
            ..
        } = self.batch;
        let Cells {
            full,
            windowed,
            states,
        } = self.cells;
        let states = states.as_ref().map_or(&[][..], StateCells::placed);
        match (kind, windowed) {
            (InputKind::Tokens, _) => indices(to, tokens.iter().map(|&t| t.into())),
            (InputKind::Positions, _) => indices(to, positions.iter().map(|&p| p.into())),
            (InputKind::PositionsMrope, _) => {
                // Text uses its position for time, height and width. The fourth position is 0.
                let all = [1, 1, 1, 0].into_iter().flat_map(|times| {
                    let positions = positions.iter();
                    positions.map(move |&p| times * i64::from(p))
                });
                to.ints([4 * positions.len(), 1, 1, 1], all)
            }
            (InputKind::CacheRows, _) => indices(to, full.rows().iter().map(|&r| r as i64)),
            (InputKind::CacheRowsSwa, Some(cells)) => {
                indices(to, cells.rows().iter().map(|&r| r as i64))
            }
            (InputKind::Mask, _) => full.mask(self.tokens, self.mask_values, to),
            (InputKind::MaskSwa, Some(cells)) => cells.mask(self.tokens, self.mask_values, to),
            (InputKind::MaskBatch, _) => self.batch_mask(u32::MAX, to),
            (InputKind::MaskBatchNear(n), _) => {
                self.batch_mask(u32::try_from(*n).unwrap_or(u32::MAX), to)
            }
            (InputKind::OutputRows, _) => indices(to, output_rows.iter().map(|&r| r.into())),
            (InputKind::StateCells, _) => indices(to, states.iter().map(|s| s.cell as i64)),
            (InputKind::StateKept, _) => {
                let kept = states.iter().map(|s| if s.starts { 0.0 } else { 1.0 });
                to.reals([1, states.len(), 1, 1], kept)
            }
            (InputKind::Temperature(t), _) => {
                let factors = positions.iter().map(|&p| f64::from(t.at(p)));
                to.reals([1, 1, positions.len(), 1], factors)
            }
            (InputKind::Block(input), _) => blocks::write(*input, full, self.tokens, to),
            (InputKind::CacheRowsSwa | InputKind::MaskSwa, None)
            | (InputKind::NextTokens(_) | InputKind::Other(_), _) => {
                to.tensor((self.others)(kind, ty)?)
            }
        }
    }

    fn produced(&mut self, value: Value, tensor: &Tensor) {
        if let Some(observer) = &mut self.observer {
            observer(value, tensor);
        }
    }
}

/// The host of a drafting phase: supplies the tokens after a batch's tokens.
pub(super) struct NextTokens<'a> {
    /// The batch's tokens, as indices into `next`; `None` for all.
    pub(super) tokens: Option<&'a [usize]>,
    pub(super) next: &'a [u32],
}

impl Host for NextTokens<'_> {
    fn input(&mut self, kind: &InputKind, _: &TensorType, to: Slot<'_>) -> Result<(), ExecError> {
        match (kind, self.tokens) {
            (InputKind::NextTokens(_), None) => indices(to, self.next.iter().map(|&t| t.into())),
            (InputKind::NextTokens(_), Some(tokens)) => {
                indices(to, tokens.iter().map(|&t| self.next[t].into()))
            }
            (kind, _) => Err(missing(kind)),
        }
    }
}

fn indices(to: Slot<'_>, values: impl ExactSizeIterator<Item = i64>) -> Result<(), ExecError> {
    to.ints([values.len(), 1, 1, 1], values)
}

pub(super) fn missing(kind: &InputKind) -> ExecError {
    ExecError::MissingInput {
        input: format!("{kind:?}"),
    }
}
