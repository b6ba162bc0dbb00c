use tpc_ir::op::{GetRows, InputKind, SetRows};
use tpc_ir::{DType, Dim, Symbol, TensorType, Value};

use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;

pub(super) struct LayerState<'a> {
    tensor: &'a str,
    size: u64,
    state: Value,
}

/// Returns the state and the cells of the batch's sequences, `[size, n_seqs]`. Cells of starting sequences are zero.
pub(super) fn read<'a>(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: &'a str,
    size: u64,
) -> Result<(LayerState<'a>, Value), ArchError> {
    let ty = TensorType::new(DType::F32, [size.into(), Symbol::NSeqMax.into()]);
    let state = b.state(&format!("{tensor}_l{}", cx.layer.index), ty);
    let cells = b.input(InputKind::StateCells);
    let goes_on = b.input(InputKind::StateKept);
    let found = b.push(GetRows { window: None }, vec![state, cells], tensor)?;
    let own = b.mul(found, goes_on, tensor)?;
    Ok((
        LayerState {
            tensor,
            size,
            state,
        },
        own,
    ))
}

impl LayerState<'_> {
    pub(super) fn write(self, b: &mut Builder<'_>, new: Value) -> Result<(), ArchError> {
        let dims = [self.size.into(), Dim::symbol(Symbol::NSeqs)];
        let new = b.reshape(new, dims, self.tensor)?;
        let cells = b.input(InputKind::StateCells);
        let stored = b.push(SetRows::along(1), vec![self.state, new, cells], self.tensor)?;
        b.update(self.state, stored);
        Ok(())
    }
}

/// Returns the token axes of recurrent layers: tokens per sequence, sequences.
pub(in crate::blocks) fn tokens() -> [Dim; 2] {
    [Symbol::NSeqTokens, Symbol::NSeqs].map(Dim::symbol)
}
