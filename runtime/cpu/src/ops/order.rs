//! Sorting of rows.
#![allow(unsafe_code)]

use std::cmp::Ordering;

use tpc_ir::op::{ArgSort, SortOrder, TopK, TopMask};

use crate::elements::{row, write_index, write_row};
use crate::error::KernelError;
use crate::launch::{Call, Elements, Launch, Request, Selected, Sizes, bytes_for, ensure, floats};

/// The indices of each row's first elements in sorted order. Ties are in index order, NaN comes last.
#[derive(Debug)]
struct Sorted {
    order: SortOrder,
    first: Option<usize>,
}

pub(super) fn top_k(op: &TopK, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Int])?;
    Ok(Box::new(Sorted {
        order: SortOrder::Descending,
        first: Some(op.k as usize),
    }))
}

pub(super) fn arg_sort(op: &ArgSort, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Int])?;
    Ok(Box::new(Sorted {
        order: op.order,
        first: None,
    }))
}

/// Moves the indices of the first `k` elements to the front, in order.
fn sort(row: &[f32], order: SortOrder, k: usize, indices: &mut [u32]) {
    for (i, slot) in (0..).zip(indices.iter_mut()) {
        *slot = i;
    }
    let key = |i: u32| match (row[i as usize], order) {
        (x, _) if x.is_nan() => f32::INFINITY,
        (x, SortOrder::Ascending) => x,
        (x, SortOrder::Descending) => -x,
    };
    // The order is total: keys are never NaN, and indices differ.
    let compare = |a: &u32, b: &u32| {
        let by_key = key(*a).partial_cmp(&key(*b)).unwrap_or(Ordering::Equal);
        by_key.then(a.cmp(b))
    };
    if k == 0 {
        return;
    }
    if k < indices.len() {
        indices.select_nth_unstable_by(k - 1, compare);
    }
    indices[..k].sort_unstable_by(compare);
}

impl Launch for Sorted {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let n = operands.first().map_or(0, |s| s[0]);
        bytes_for(&[n, n])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let n = x.ne[0];
        let k = self.first.unwrap_or(n);
        let fits = y.ne[0] == k && k <= n && y.ne[1..] == x.ne[1..];
        ensure(
            fits && u32::try_from(n).is_ok(),
            "mismatched sizes of x and the order",
        )?;
        let [buffer, indices] = floats(call.scratch, [n, n])?;
        // SAFETY: u32 has f32's size and alignment, and every bit pattern is valid.
        let indices = unsafe { std::slice::from_raw_parts_mut(indices.as_mut_ptr().cast(), n) };
        for i in call.worker.items(x.rows()) {
            let [i1, i2, i3] = x.indices(i);
            // SAFETY: the rows exist; the result row is this worker's.
            unsafe {
                sort(row(&x, [i1, i2, i3], buffer), self.order, k, indices);
                for (i0, index) in indices[..k].iter().enumerate() {
                    write_index(&y, [i0, i1, i2, i3], *index as usize);
                }
            }
        }
        Ok(())
    }
}

#[derive(Debug)]
struct TopMasked {
    k: usize,
}

pub(super) fn top_mask(op: &TopMask, request: &Request<'_>) -> Selected {
    request.expect(&[Elements::Real], &[Elements::Real])?;
    Ok(Box::new(TopMasked {
        k: usize::try_from(op.k).unwrap_or(usize::MAX),
    }))
}

impl Launch for TopMasked {
    fn scratch_bytes(&self, operands: &[Sizes], _: &[Sizes]) -> usize {
        let n = operands.first().map_or(0, |s| s[0]);
        bytes_for(&[n, n, n])
    }

    unsafe fn run(&self, call: Call<'_>) -> Result<(), KernelError> {
        let ([x], [y]) = call.views()?;
        let n = x.ne[0];
        ensure(
            y.ne == x.ne && u32::try_from(n).is_ok(),
            "mismatched sizes of x and its mask",
        )?;
        let k = self.k.min(n);
        let [buffer, indices, mask] = floats(call.scratch, [n, n, n])?;
        // SAFETY: u32 has f32's size and alignment, and every bit pattern is valid.
        let indices = unsafe { std::slice::from_raw_parts_mut(indices.as_mut_ptr().cast(), n) };
        for i in call.worker.items(x.rows()) {
            let [i1, i2, i3] = x.indices(i);
            // SAFETY: the rows exist; the result row is this worker's.
            unsafe {
                sort(
                    row(&x, [i1, i2, i3], buffer),
                    SortOrder::Descending,
                    k,
                    indices,
                );
                mask.fill(f32::NEG_INFINITY);
                for index in &indices[..k] {
                    mask[*index as usize] = 0.0;
                }
                write_row(&y, y.row([i1, i2, i3]), 0, mask);
            }
        }
        Ok(())
    }
}
