//! Reads and writes elements of views.
#![allow(unsafe_code)]

use tpc_ir::DType;
use tpc_runtime::quant::{can_dequantise, can_quantise, dequantise, quantise_searched};

use crate::blocks::{LEN, Rows, decode_rows, encode_q8_0};
use crate::lanes::prefetch;
use crate::math::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};
use crate::simd::vectorised;
use crate::view::View;

/// Elements processed at a time, a multiple of every block size.
pub(crate) const CHUNK: usize = 512;

pub(crate) fn is_readable(dtype: DType) -> bool {
    !dtype.is_integer() && can_dequantise(dtype)
}

pub(crate) fn is_writable(dtype: DType) -> bool {
    !dtype.is_integer() && can_quantise(dtype)
}

vectorised! {
    fn encode_f16(values: &[f32], out: &mut [[u8; 2]]) {
        for (b, x) in out.iter_mut().zip(values) {
            *b = f32_to_f16(*x).to_le_bytes();
        }
    }
}

vectorised! {
    fn encode_bf16(values: &[f32], out: &mut [[u8; 2]]) {
        for (b, x) in out.iter_mut().zip(values) {
            *b = f32_to_bf16(*x).to_le_bytes();
        }
    }
}

pub(crate) fn decode(dtype: DType, bytes: &[u8], out: &mut [f32]) {
    let blocks = out.len() / LEN;
    let (whole, rest) = out.split_at_mut(blocks * LEN);
    let from = bytes.as_ptr();
    let rows = Rows {
        from,
        stride: 0,
        count: 1,
        blocks,
        ahead: 0,
    };
    // SAFETY: the slice has the bytes of these elements.
    if !unsafe { decode_rows(dtype, rows, whole.as_mut_ptr(), 0) } {
        // The type is checked, and chunks are whole blocks.
        let decoded = dequantise(dtype, bytes, out);
        debug_assert_eq!(decoded, Ok(()));
        return;
    }
    if rest.is_empty() {
        return;
    }
    let words = bytes.as_chunks::<4>().0[..].iter().skip(whole.len());
    let halves = bytes.as_chunks::<2>().0[..].iter().skip(whole.len());
    match dtype {
        DType::F32 => rest
            .iter_mut()
            .zip(words)
            .for_each(|(x, b)| *x = f32::from_le_bytes(*b)),
        DType::F16 => rest
            .iter_mut()
            .zip(halves)
            .for_each(|(x, b)| *x = f16_to_f32(u16::from_le_bytes(*b))),
        _ => rest
            .iter_mut()
            .zip(halves)
            .for_each(|(x, b)| *x = bf16_to_f32(u16::from_le_bytes(*b))),
    }
}

pub(crate) fn encode(dtype: DType, values: &[f32], out: &mut [u8]) {
    match dtype {
        DType::F32 => {
            let (words, _) = out.as_chunks_mut::<4>();
            for (b, x) in words.iter_mut().zip(values) {
                *b = x.to_le_bytes();
            }
        }
        DType::F16 => encode_f16(values, out.as_chunks_mut().0),
        DType::Bf16 => encode_bf16(values, out.as_chunks_mut().0),
        DType::Q8_0 => encode_q8_0(values, out),
        _ => {
            // The type is checked, and chunks are whole blocks.
            let encoded = quantise_searched(dtype, values, out);
            debug_assert_eq!(encoded, Ok(()));
        }
    }
}

const fn bytes_of(dtype: DType, n: usize) -> usize {
    n / dtype.block_len() as usize * dtype.block_bytes() as usize
}

/// Reads elements `[at, at + out.len())` of a row into `out`. Both ends are block boundaries.
///
/// # Safety
/// `row` is a row of `view`, whose bytes are readable; the elements exist; the type is readable.
pub(crate) unsafe fn read_row(view: &View, row: *const u8, at: usize, out: &mut [f32]) {
    let dtype = view.dtype;
    let block = dtype.block_len() as usize;
    let from = row.wrapping_add(at / block * view.nb[0]);
    if view.has_dense_rows() {
        // SAFETY: caller's contract; the elements are contiguous.
        let bytes = unsafe { std::slice::from_raw_parts(from, bytes_of(dtype, out.len())) };
        return decode(dtype, bytes, out);
    }
    for (i, x) in out.chunks_mut(block).enumerate() {
        let at = from.wrapping_add(i * view.nb[0]);
        // SAFETY: caller's contract, for every element's block.
        let bytes = unsafe { std::slice::from_raw_parts(at, dtype.block_bytes() as usize) };
        decode(dtype, bytes, x);
    }
}

/// Writes `values` to a row, starting at element `at`. Both ends are block boundaries.
///
/// # Safety
/// `row` is a row of `view`, whose bytes are writable and not used by other threads; the elements exist; the type is
/// writable.
pub(crate) unsafe fn write_row(view: &View, row: *mut u8, at: usize, values: &[f32]) {
    let dtype = view.dtype;
    let block = dtype.block_len() as usize;
    let to = row.wrapping_add(at / block * view.nb[0]);
    if view.has_dense_rows() {
        // SAFETY: caller's contract; the elements are contiguous.
        let bytes = unsafe { std::slice::from_raw_parts_mut(to, bytes_of(dtype, values.len())) };
        return encode(dtype, values, bytes);
    }
    for (i, x) in values.chunks(block).enumerate() {
        let at = to.wrapping_add(i * view.nb[0]);
        // SAFETY: caller's contract, for every element's block.
        let bytes = unsafe { std::slice::from_raw_parts_mut(at, dtype.block_bytes() as usize) };
        encode(dtype, x, bytes);
    }
}

/// Prefetches `count` rows along axis 1, possibly beyond the end.
pub(crate) fn prefetch_rows(view: &View, indices: [usize; 3], count: usize) {
    let (from, bytes) = (view.row(indices), bytes_of(view.dtype, view.ne[0]));
    for i in 0..count {
        let row = from.wrapping_add(i * view.nb[1]);
        for at in (0..bytes).step_by(64) {
            prefetch(row.wrapping_add(at));
        }
    }
}

/// Reads `count` rows along axis 1 into rows of `out` that are `width` apart. Also prefetches `count` rows that start
/// `ahead` rows later.
///
/// # Safety
/// Same as [`read_row`], for every row; `out` can hold all rows. Prefetched rows need not exist.
pub(crate) unsafe fn read_rows(
    view: &View,
    [i1, i2, i3]: [usize; 3],
    [count, ahead]: [usize; 2],
    out: &mut [f32],
    width: usize,
) {
    let (n, from) = (view.ne[0], view.row([i1, i2, i3]));
    if n.is_multiple_of(LEN) && view.has_dense_rows() {
        let rows = Rows {
            from,
            stride: view.nb[1],
            count,
            blocks: n / LEN,
            ahead,
        };
        debug_assert!(count == 0 || out.len() >= (count - 1) * width + n);
        // SAFETY: caller's contract.
        if unsafe { decode_rows(view.dtype, rows, out.as_mut_ptr(), width) } {
            return;
        }
    }
    for i in 0..count {
        let out = &mut out[i * width..][..n];
        // SAFETY: caller's contract.
        unsafe { read_row(view, view.row([i1 + i, i2, i3]), 0, out) };
    }
}

/// Returns a whole row: borrowed if contiguous f32, otherwise decoded into `buffer` of the row's length.
///
/// # Safety
/// Same as [`read_row`]; no other thread writes the row while the result is used.
pub(crate) unsafe fn row<'a>(view: &View, indices: [usize; 3], buffer: &'a mut [f32]) -> &'a [f32] {
    let from = view.row(indices);
    let aligned = from.cast::<f32>().is_aligned();
    if view.dtype == DType::F32 && view.has_dense_rows() && aligned {
        // SAFETY: caller's contract; the row is `ne[0]` aligned, contiguous f32.
        return unsafe { std::slice::from_raw_parts(from.cast(), buffer.len()) };
    }
    // SAFETY: caller's contract.
    unsafe { read_row(view, from, 0, buffer) };
    buffer
}

/// Reads one real number. The type does not have blocks.
///
/// # Safety
/// The element exists and is readable, and the type is readable.
pub(crate) unsafe fn real(view: &View, [i0, i1, i2, i3]: [usize; 4]) -> f32 {
    let mut out = [0.0];
    // SAFETY: caller's contract.
    unsafe { read_row(view, view.row([i1, i2, i3]), i0, &mut out) };
    out[0]
}

/// Reads one integer.
///
/// # Safety
/// The element exists and is readable; the type is an integer.
pub(crate) unsafe fn int(view: &View, [i0, i1, i2, i3]: [usize; 4]) -> i64 {
    let at = view.row([i1, i2, i3]).wrapping_add(i0 * view.nb[0]);
    // SAFETY: caller's contract.
    unsafe {
        match view.dtype {
            DType::I8 => i64::from(at.cast::<i8>().read_unaligned()),
            DType::I16 => i64::from(at.cast::<i16>().read_unaligned()),
            DType::I32 => i64::from(at.cast::<i32>().read_unaligned()),
            _ => at.cast::<i64>().read_unaligned(),
        }
    }
}

/// Writes one integer, converted like in C.
///
/// # Safety
/// The element exists, is writable and not used by other threads; the type is an integer.
pub(crate) unsafe fn write_int(view: &View, [i0, i1, i2, i3]: [usize; 4], value: i64) {
    let at = view.row([i1, i2, i3]).wrapping_add(i0 * view.nb[0]);
    // SAFETY: caller's contract.
    unsafe {
        match view.dtype {
            DType::I8 => at.cast::<i8>().write_unaligned(value as i8),
            DType::I16 => at.cast::<i16>().write_unaligned(value as i16),
            DType::I64 => at.cast::<i64>().write_unaligned(value),
            _ => at.cast::<i32>().write_unaligned(value as i32),
        }
    }
}

/// Writes an index.
///
/// # Safety
/// Same as [`write_int`].
pub(crate) unsafe fn write_index(view: &View, at: [usize; 4], index: usize) {
    // SAFETY: caller's contract.
    unsafe { write_int(view, at, index as i64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_whole_blocks_of_every_type() {
        for dtype in DType::ALL {
            assert!((CHUNK as u64).is_multiple_of(dtype.block_len()));
        }
    }

    #[test]
    fn elements_are_written_and_read_back_through_gaps() {
        let values: Vec<f32> = (0..64_u8).map(|i| f32::from(i) / 8.0 - 4.0).collect();
        for &dtype in DType::ALL {
            if !is_writable(dtype) || dtype.block_len() > 32 {
                continue;
            }
            let block = dtype.block_bytes() as usize;
            let mut bytes = vec![0_u8; 64 * 16];
            let dense = View::dense(bytes.as_mut_ptr(), dtype, [64, 1, 1, 1]);
            let gaps = View {
                nb: [block + 3, 0, 0, 0],
                ..dense
            };
            let mut found = [[0.0; 64]; 2];
            for (view, found) in [dense, gaps].iter().zip(&mut found) {
                // SAFETY: 64 elements, gaps included, fit in `bytes`.
                unsafe {
                    write_row(view, view.ptr, 0, &values);
                    read_row(view, view.ptr, 0, found);
                }
            }
            assert_eq!(found[0], found[1], "{dtype}");
            let mut expected = [0.0; 64];
            let mut packed = Vec::new();
            tpc_runtime::quant::quantise(dtype, &values, &mut packed).expect("an encoder");
            dequantise(dtype, &packed, &mut expected).expect("a decoder");
            assert_eq!(found[0], expected, "{dtype}");
        }
    }
}
