//! Values of records, read from the content of memory.

use tpc_core::golden::{Distance, distance};
use tpc_ggml::capture::Record;

/// Returns the elements of a record in the content of its owner's memory; `None` if the record reads parts of blocks
/// or another element type.
pub(super) fn elements(t: &Record, owner: &Record, memory: &[f64]) -> Option<Vec<f64>> {
    if t.layout == owner.layout && t.dtype == owner.dtype {
        return Some(memory.to_vec());
    }
    if t.dtype != owner.dtype || t.dtype.block_len() != 1 {
        return None;
    }
    let size = t.dtype.block_bytes();
    let in_elements = |bytes: u64| bytes.is_multiple_of(size).then_some(bytes / size);
    let first = in_elements(t.layout.offset)?;
    let mut strides = [0; 4];
    for (stride, &bytes) in strides.iter_mut().zip(&t.layout.nb) {
        *stride = in_elements(bytes)?;
    }
    let ne = t.ne();
    let mut out = Vec::with_capacity(usize::try_from(t.elements()).ok()?);
    for i3 in 0..ne[3] {
        for i2 in 0..ne[2] {
            for i1 in 0..ne[1] {
                let row = first + i3 * strides[3] + i2 * strides[2] + i1 * strides[1];
                for i0 in 0..ne[0] {
                    let at = usize::try_from(row + i0 * strides[0]).ok()?;
                    out.push(*memory.get(at)?);
                }
            }
        }
    }
    Some(out)
}

/// Returns the distance between two values. Equal infinite numbers, as in masks, and two NaN agree.
pub(super) fn between(a: &[f64], b: &[f64]) -> Distance {
    if a.len() != b.len() {
        return Distance::INFINITE;
    }
    let differ = |&(a, b): &(f64, f64)| a.is_finite() || (a != b && !(a.is_nan() && b.is_nan()));
    let pairs = || {
        let pairs = a.iter().copied().zip(b.iter().copied());
        pairs.filter(differ)
    };
    distance(pairs().map(|p| p.0), pairs().map(|p| p.1))
}
