//! Reads and writes tensors through views.
#![allow(unsafe_code)]

use tpc_ir::DType;
use tpc_runtime::{Data, ExecError, Slot, SlotMemory, Tensor};

use crate::elements::{int, is_readable, read_row};
use crate::error::KernelError;
use crate::view::View;

/// Returns an input's memory. The executor reads it only after it is written.
///
/// # Errors
/// Returns an error if the view has gaps.
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
    // SAFETY: a dense, aligned view of `n` elements of types without invalid bit patterns. No worker runs while the
    // host writes inputs.
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

/// Reads a view into the tensor `out`, reusing its memory.
///
/// # Errors
/// Returns an error if the element type is not readable.
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
            what: format!("an output of type {} cannot be read", from.dtype),
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

/// Copies a view's elements without conversion. The copy does not have gaps.
pub fn packed(from: &View) -> Vec<u8> {
    let width = from.dtype.block_bytes() as usize;
    let blocks = from.ne[0].div_ceil(from.dtype.block_len() as usize);
    let mut out = vec![0; from.rows() * blocks * width];
    pack(from, &mut out);
    out
}

/// Copies a view's elements into `to`, without conversion or gaps. The memory has the elements' size.
pub(super) fn pack(from: &View, to: &mut [u8]) {
    if from.is_empty() {
        return;
    }
    let width = from.dtype.block_bytes() as usize;
    let blocks = from.ne[0].div_ceil(from.dtype.block_len() as usize);
    let dense = from.nb[0] == width || blocks == 1;
    for (row, to) in to.chunks_exact_mut(blocks * width).enumerate() {
        let at = from.row(from.indices(row));
        let piece = if dense { blocks * width } else { width };
        for (i, to) in to.chunks_exact_mut(piece).enumerate() {
            // SAFETY: blocks of the view.
            let piece = unsafe { std::slice::from_raw_parts(at.add(i * from.nb[0]), piece) };
            to.copy_from_slice(piece);
        }
    }
}

/// Converts a kernel's error.
pub fn error(e: KernelError) -> ExecError {
    match e {
        KernelError::Index { what, index, bound } => ExecError::Index { what, index, bound },
        e => ExecError::Parameter {
            what: e.to_string(),
        },
    }
}
