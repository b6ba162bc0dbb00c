//! What recurrent layers keep of each sequence: a state with a cell per sequence, read and written by cell.

use tpc_ir::op::{GetRows, InputKind, SetRows};
use tpc_ir::{DType, Dim, Symbol, TensorType, Value};

use crate::blocks::builder::Builder;
use crate::blocks::context::LayerContext;
use crate::error::ArchError;

/// A state of a layer.
pub(super) struct Kept<'a> {
    tensor: &'a str,
    size: u64,
    state: Value,
}

/// The state of that tensor, and what it holds of the sequences of the batch, `[size, n_seqs]`: zero for those that start.
pub(super) fn read<'a>(
    b: &mut Builder<'_>,
    cx: &LayerContext<'_>,
    tensor: &'a str,
    size: u64,
) -> Result<(Kept<'a>, Value), ArchError> {
    let ty = TensorType::new(DType::F32, [size.into(), Symbol::NSeqMax.into()]);
    let state = b.state(&format!("{tensor}_l{}", cx.layer.index), ty);
    let cells = b.input(InputKind::StateCells);
    let goes_on = b.input(InputKind::StateKept);
    let found = b.push(GetRows { window: None }, vec![state, cells], tensor)?;
    let own = b.mul(found, goes_on, tensor)?;
    Ok((
        Kept {
            tensor,
            size,
            state,
        },
        own,
    ))
}

impl Kept<'_> {
    /// Keeps `new`, `size` numbers of each sequence of the batch.
    pub(super) fn write(self, b: &mut Builder<'_>, new: Value) -> Result<(), ArchError> {
        let dims = [self.size.into(), Dim::symbol(Symbol::NSeqs)];
        let new = b.reshape(new, dims, self.tensor)?;
        let cells = b.input(InputKind::StateCells);
        let stored = b.push(
            SetRows { axis: 1 },
            vec![self.state, new, cells],
            self.tensor,
        )?;
        b.update(self.state, stored);
        Ok(())
    }
}

/// Tokens of each sequence, and sequences: what the tokens of a batch are for recurrent layers.
pub(super) fn tokens() -> [Dim; 2] {
    [Symbol::NSeqTokens, Symbol::NSeqs].map(Dim::symbol)
}
