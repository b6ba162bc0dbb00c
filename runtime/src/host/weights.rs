use std::collections::BTreeSet;

use tpc_ir::op::Weight;
use tpc_ir::program::{BufferData, Program};
use tpc_ir::{Buffer, Dim, Op, Place, TensorType, Value};

use crate::error::ExecError;
use crate::weights::{PackedWeight, WeightData, WeightSource, pack};

/// A place's part of a weight in the file's type, with its buffer.
#[derive(Clone, Debug)]
pub struct BufferedWeight<'a> {
    /// The weight.
    pub value: Value,
    /// The type of the weight.
    pub ty: &'a TensorType,
    /// The place that stores the part.
    pub place: Place,
    /// The elements of the part.
    pub part: PackedWeight<'a>,
    /// The buffer of the part.
    pub buffer: &'a BufferData,
}

/// Reads the weights of the buffers that are `wanted`, once per buffer. `store` writes them.
///
/// # Errors
/// Returns [`ExecError::WeightMismatch`] if a weight does not match its declaration, and the errors of `source` and
/// `store`.
pub fn load_weights(
    program: &Program,
    source: &dyn WeightSource,
    wanted: &dyn Fn(Buffer) -> bool,
    store: &mut dyn FnMut(BufferedWeight<'_>) -> Result<(), ExecError>,
) -> Result<(), ExecError> {
    let graph = &program.graph;
    let mut loaded = BTreeSet::new();
    for (value, data) in graph.values() {
        let (Op::Weight(op), Some(home)) = (graph.def_op(value), program.home(value)) else {
            continue;
        };
        if !wanted(home.buffer) || !loaded.insert(home.buffer) {
            continue;
        }
        let whole = source.weight(&op.tensor)?;
        store(BufferedWeight {
            value,
            ty: &data.ty,
            place: data.place,
            part: declared_part(&data.ty, op, whole)?,
            buffer: program.buffer(home.buffer),
        })?;
        source.release(whole.bytes);
    }
    Ok(())
}

fn declared_part<'a>(
    ty: &TensorType,
    op: &Weight,
    whole: WeightData<'a>,
) -> Result<PackedWeight<'a>, ExecError> {
    let part = pack(&op.tensor, whole, op.parts.as_deref())?;
    let sizes = ty.dims.iter().map(Dim::as_const);
    if part.dtype == ty.dtype && sizes.eq(part.ne.iter().map(|n| Some(*n as u64))) {
        return Ok(part);
    }
    Err(ExecError::WeightMismatch {
        tensor: op.tensor.clone(),
        expected: ty.to_string(),
        found: format!("{}{:?}", part.dtype, part.ne),
    })
}
