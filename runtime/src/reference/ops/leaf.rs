//! Leaves: they have no operands, so what they are comes from the interpreter.

use tpc_ir::op::{Op, Weight};
use tpc_ir::{Bindings, TensorType};

use crate::reference::error::ExecError;
use crate::reference::tensor::{Shape, Tensor};
use crate::reference::weights::{WeightSource, pack};

/// A leaf as an op: an error.
pub(super) fn eval(op: &Op) -> Result<Vec<Tensor>, ExecError> {
    Err(ExecError::Leaf { op: op.name() })
}

/// The tensor that a weight stands for, and the bytes its packed form takes.
pub(in crate::reference) fn load_weight(
    op: &Weight,
    ty: &TensorType,
    source: &dyn WeightSource,
) -> Result<(Tensor, u64), ExecError> {
    let data = source.weight(&op.tensor)?;
    if data.dtype != ty.dtype {
        return Err(ExecError::WeightMismatch {
            tensor: op.tensor.clone(),
            expected: format!("type {}", ty.dtype),
            found: data.dtype.to_string(),
        });
    }
    let packed = pack(&op.tensor, data, op.parts.as_deref())?;
    let declared = Shape::of(ty, &Bindings::default())?;
    if packed.ne != declared.dims {
        return Err(ExecError::WeightMismatch {
            tensor: op.tensor.clone(),
            expected: format!("sizes {:?}", declared.dims),
            found: format!("{:?}", packed.ne),
        });
    }
    let bytes = packed.bytes.len() as u64;
    Ok((packed.unpack()?, bytes))
}
