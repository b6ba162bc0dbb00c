use tpc_ir::op::{InputKind, Op};
use tpc_ir::program::{Program, StorageFormat};
use tpc_ir::{Bindings, Output, Value};

use crate::quant;
use crate::tensor::{Data, Shape, Tensor};

/// Returns the inputs, each with the first phase that reads it.
pub fn inputs(program: &Program) -> Vec<(usize, Value, InputKind)> {
    let graph = &program.graph;
    let of = |value: Value| match graph.def_op(value) {
        Op::Input(input) => {
            let ahead = match input.kind {
                InputKind::NextTokens(n) => n,
                _ => 0,
            };
            let phase = program.phases.iter().position(|p| p.lookahead == ahead)?;
            Some((phase, value, input.kind.clone()))
        }
        _ => None,
    };
    graph.values().filter_map(|(v, _)| of(v)).collect()
}

/// Returns the named outputs in order, each with the phase that computes it.
pub fn outputs(program: &Program) -> Vec<(usize, Value)> {
    let named = program.graph.outputs.iter().filter_map(|o| match o {
        Output::Named(_, value) => Some((program.phase_of(*value), *value)),
        Output::State { .. } => None,
    });
    named.collect()
}

/// The bytes of a weight or state in an arena.
#[derive(Clone, Copy, Debug)]
pub struct StoredExtent {
    /// Arena index.
    pub arena: usize,
    /// First byte.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: usize,
}

/// Returns the extents of all dense weights and states that are stored in the file's type.
pub fn extents(program: &Program) -> Vec<Option<StoredExtent>> {
    let values = program.graph.values();
    let placed = |value: Value| match program.graph.def_op(value) {
        Op::Weight(_) | Op::State(_) => extent(program, value),
        _ => None,
    };
    values.map(|(value, _)| placed(value)).collect()
}

fn extent(program: &Program, value: Value) -> Option<StoredExtent> {
    let home = program.home(value)?;
    let buffer = program.buffer(home.buffer);
    let ty = &program.graph.value(value).ty;
    if buffer.format != StorageFormat::FILE || !home.layout.is_dense(ty) {
        return None;
    }
    let most = program.shapes.last()?.most;
    let offset = home.layout.offset.eval(&most)?;
    Some(StoredExtent {
        arena: buffer.arena.index(),
        offset: buffer.extent(0).offset.checked_add(offset)?,
        bytes: usize::try_from(Shape::of(ty, &most).ok()?.bytes()).ok()?,
    })
}

/// Dequantises a weight from its bytes.
pub fn weight_tensor(program: &Program, weight: Value, bytes: &[u8]) -> Option<Tensor> {
    let ty = &program.graph.value(weight).ty;
    let shape = Shape::of(ty, &Bindings::default()).ok()?;
    let mut out = vec![0.0; shape.dims.iter().product()];
    quant::dequantise(ty.dtype, bytes, &mut out).ok()?;
    Tensor::new(shape.dims, Data::F32(out)).ok()
}
