//! Inputs and outputs.
#![allow(unsafe_code)]

use tpc_ir::op::{InputKind, Op};
use tpc_ir::program::{Program, StorageFormat};
use tpc_ir::{Bindings, DType, Output, Value};
use tpc_runtime::{Data, ExecError, Shape, Slot, SlotMemory, Tensor, quant};

use crate::elements::{int, is_readable, read_row};
use crate::error::KernelError;
use crate::view::View;

/// The inputs, each with the phase at whose start it is known.
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

/// The named outputs in their order, each with the phase that computes it.
pub fn outputs(program: &Program) -> Vec<(usize, Value)> {
    let named = program.graph.outputs.iter().filter_map(|o| match o {
        Output::Named(_, value) => Some((program.phase_of(*value), *value)),
        Output::State { .. } => None,
    });
    named.collect()
}

/// The memory of an input, which nobody reads before it is written.
///
/// # Errors
/// When it has gaps.
pub fn slot(to: &View) -> Result<Slot<'_>, ExecError> {
    let n = to.len();
    let ptr = match n {
        0 => std::ptr::without_provenance_mut(16),
        _ => to.ptr,
    };
    if to.flat().is_none() && n > 0 || !ptr.addr().is_multiple_of(8) {
        return Err(ExecError::Malformed {
            what: "an input has gaps, or does not begin at a multiple of 8 bytes".into(),
        });
    }
    // SAFETY: a dense and aligned view of `n` elements of these types, for which every pattern of bits is a value. No
    // worker runs while the host writes inputs.
    let memory = unsafe {
        match to.dtype {
            DType::I32 => SlotMemory::I32(std::slice::from_raw_parts_mut(ptr.cast(), n)),
            DType::I64 => SlotMemory::I64(std::slice::from_raw_parts_mut(ptr.cast(), n)),
            DType::F32 => SlotMemory::F32(std::slice::from_raw_parts_mut(ptr.cast(), n)),
            dtype => {
                let row = to.ne[0].div_ceil(dtype.block_len() as usize);
                let bytes = row * dtype.block_bytes() as usize * to.rows();
                SlotMemory::Packed(dtype, std::slice::from_raw_parts_mut(ptr, bytes))
            }
        }
    };
    Slot::new(to.ne, memory)
}

/// Makes `out` a tensor of the elements that a view holds, in the memory that it has.
///
/// # Errors
/// When its elements have a type that nobody reads.
pub fn read(from: &View, out: &mut Option<Tensor>) -> Result<(), ExecError> {
    if from.dtype.is_integer() {
        let of_row = |[i1, i2, i3]: [usize; 3]| {
            // SAFETY: an element of the view, of an integer type.
            (0..from.ne[0]).map(move |i0| unsafe { int(from, [i0, i1, i2, i3]) })
        };
        let all = (0..from.rows()).flat_map(|row| of_row(from.indices(row)));
        *out = Some(Tensor::new(from.ne, Data::Int(all.collect()))?);
        return Ok(());
    }
    if !is_readable(from.dtype) {
        return Err(ExecError::Parameter {
            what: format!("an output of type {}", from.dtype),
        });
    }
    let mut data = match out.take().map(Tensor::into_data) {
        Some(Data::F32(data)) => data,
        _ => Vec::new(),
    };
    data.clear();
    data.reserve_exact(from.len());
    if from.dtype == DType::F32 {
        for row in 0..from.rows() {
            let at = from.row(from.indices(row));
            let element = |i: usize| {
                // SAFETY: an element of the view.
                unsafe { at.add(i * from.nb[0]).cast::<f32>().read_unaligned() }
            };
            data.extend((0..from.ne[0]).map(element));
        }
    } else {
        data.resize(from.len(), 0.0);
        for (row, to) in data.chunks_exact_mut(from.ne[0].max(1)).enumerate() {
            // SAFETY: a row of the view, whose type is readable.
            unsafe { read_row(from, from.row(from.indices(row)), 0, to) };
        }
    }
    *out = Some(Tensor::new(from.ne, Data::F32(data))?);
    Ok(())
}

/// The elements of a view as they are, without gaps.
pub fn packed(from: &View) -> Vec<u8> {
    let width = from.dtype.block_bytes() as usize;
    let blocks = from.ne[0].div_ceil(from.dtype.block_len() as usize);
    // Blocks that lie side by side are copied at once.
    let (pieces, bytes) = match from.nb[0] == width {
        true => (blocks.min(1), blocks * width),
        false => (blocks, width),
    };
    let mut out = Vec::with_capacity(from.rows() * blocks * width);
    for row in 0..from.rows() {
        let at = from.row(from.indices(row));
        for i in 0..pieces {
            // SAFETY: blocks of the view.
            let piece = unsafe { std::slice::from_raw_parts(at.add(i * from.nb[0]), bytes) };
            out.extend_from_slice(piece);
        }
    }
    out
}

/// Where a weight or a state lies.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The arena, by its position.
    pub arena: usize,
    /// Its first byte in the arena.
    pub offset: u64,
    /// The number of its bytes.
    pub bytes: usize,
}

/// Where each weight and each state lies that has no gaps and is stored as the file's types are.
pub fn extents(program: &Program) -> Vec<Option<Placed>> {
    let values = program.graph.values();
    let placed = |value: Value| match program.graph.def_op(value) {
        Op::Weight(_) | Op::State(_) => extent(program, value),
        _ => None,
    };
    values.map(|(value, _)| placed(value)).collect()
}

fn extent(program: &Program, value: Value) -> Option<Placed> {
    let home = program.home(value)?;
    let buffer = program.buffer(home.buffer);
    let ty = &program.graph.value(value).ty;
    if buffer.format != StorageFormat::FILE || !home.layout.is_dense(ty) {
        return None;
    }
    let most = program.shapes.last()?.most;
    let offset = home.layout.offset.eval(&most)?;
    Some(Placed {
        arena: buffer.arena.index(),
        offset: buffer.extent(0).offset.checked_add(offset)?,
        bytes: usize::try_from(Shape::of(ty, &most).ok()?.bytes()).ok()?,
    })
}

/// A weight of these bytes.
pub fn tensor(program: &Program, weight: Value, bytes: &[u8]) -> Option<Tensor> {
    let ty = &program.graph.value(weight).ty;
    let shape = Shape::of(ty, &Bindings::default()).ok()?;
    let mut out = vec![0.0; shape.dims.iter().product()];
    quant::dequantise(ty.dtype, bytes, &mut out).ok()?;
    Tensor::new(shape.dims, Data::F32(out)).ok()
}

/// The error of a kernel.
pub fn error(e: KernelError) -> ExecError {
    match e {
        KernelError::Index { what, index, bound } => ExecError::Index { what, index, bound },
        e => ExecError::Parameter {
            what: e.to_string(),
        },
    }
}
