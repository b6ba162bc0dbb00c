//! Products with packed weights.
#![allow(unsafe_code)]

use std::ops::Range;

use tpc_ir::{DType, Interval};

use super::terms::Terms;
use crate::error::KernelError;
use crate::launch::ensure;
use crate::pages::{Zero, Zeroed};
use crate::product::{
    Activations, BLOCK, Block, Format, Isa, Matrix, Output, Product, Scratch, Tokens, quantise,
    residual,
};
use crate::view::View;
use crate::worker::Worker;

/// A packed weight: matrices of one format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed {
    pub(super) format: Format,
    pub(super) n: usize,
    /// Sizes of axes 2 and 3.
    pub(super) stack: [usize; 2],
    pub(super) ptr: *const u8,
    pub(super) terms: Terms,
}

// SAFETY: weights are written before any launch runs, and then only read.
unsafe impl Send for Packed {}
// SAFETY: as above.
unsafe impl Sync for Packed {}

impl Packed {
    pub(super) fn matrix(&self, i: usize) -> Result<Matrix<'_>, KernelError> {
        ensure(i < self.n, "the weight does not have the matrix")?;
        let bytes = self.format.bytes();
        // SAFETY: the buffer holds all `n` matrices.
        let bytes = unsafe { std::slice::from_raw_parts(self.ptr.add(i * bytes), bytes) };
        Matrix::new(self.format, bytes).map_err(|_| KernelError::Shape {
            what: "a packed weight has the wrong size",
        })
    }
}

/// Memory that a device's workers share during a product.
#[derive(Debug)]
pub(super) struct DeviceScratch {
    blocks: Zeroed<Block>,
    floats: Zeroed<f32>,
    /// Each expert's first entry in the lists, then the end of the lists.
    starts: Zeroed<u32>,
    from: Zeroed<u32>,
    to: Zeroed<u32>,
}

// SAFETY: a block of zero bytes is `Block::ZERO`.
unsafe impl Zero for Block {}

/// Element counts of shared memory for a product's largest batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Needs {
    pub(super) blocks: usize,
    pub(super) floats: usize,
    pub(super) experts: usize,
    pub(super) routes: usize,
}

impl Needs {
    pub(super) fn join(&mut self, other: Needs) {
        self.blocks = self.blocks.max(other.blocks);
        self.floats = self.floats.max(other.floats);
        self.experts = self.experts.max(other.experts);
        self.routes = self.routes.max(other.routes);
    }

    pub(super) fn of_rows(weight: &Packed, rows: usize) -> Needs {
        let k = weight.format.part().k();
        match weight.format.takes_quantised() {
            true => Needs {
                blocks: weight.terms.each().len() * rows * k.div_ceil(BLOCK),
                ..Needs::default()
            },
            false => Needs {
                floats: rows * k,
                ..Needs::default()
            },
        }
    }
}

impl DeviceScratch {
    pub(super) fn new(needs: &Needs) -> std::io::Result<DeviceScratch> {
        Ok(DeviceScratch {
            blocks: Zeroed::new(needs.blocks)?,
            floats: Zeroed::new(needs.floats)?,
            starts: Zeroed::new(needs.experts + 1)?,
            from: Zeroed::new(needs.routes)?,
            to: Zeroed::new(needs.routes)?,
        })
    }
}

/// Returns a mutable range of shared memory.
///
/// # Safety
/// No other thread uses the range until workers have met at a barrier.
#[expect(
    clippy::mut_from_ref,
    reason = "workers share the memory, and the caller guarantees exclusive use"
)]
unsafe fn part<T: Zero>(all: &Zeroed<T>, at: usize, len: usize) -> Result<&mut [T], KernelError> {
    if at.checked_add(len).is_none_or(|end| end > all.len()) {
        let (needed, found) = (at.saturating_add(len), all.len());
        return Err(KernelError::Scratch { needed, found });
    }
    // SAFETY: inside the memory; every bit pattern is valid; the caller guarantees exclusive use.
    Ok(unsafe { std::slice::from_raw_parts_mut(all.ptr().add(at), len) })
}

/// # Safety
/// The element exists and is an f32.
unsafe fn element(row: *const u8, nb: usize, i: usize) -> f32 {
    // SAFETY: caller's contract.
    unsafe { row.add(i * nb).cast::<f32>().read_unaligned() }
}

/// Converts the worker's share of the activations to the product's format, and waits for the other workers. Second
/// terms follow all first terms.
///
/// # Safety
/// The view's elements are readable, and only this launch's workers use the scratch memory.
unsafe fn prepare(
    worker: &Worker<'_>,
    isa: Isa,
    weight: &Packed,
    x: &View,
    scratch: &DeviceScratch,
    row: &mut [f32],
) -> Result<(), KernelError> {
    let format = &weight.format;
    let k = format.part().k();
    ensure(
        x.ne[0] == k && x.dtype == DType::F32,
        "wrong sizes of a product's activations",
    )?;
    let row = row.get_mut(..k).ok_or(KernelError::Scratch {
        needed: k,
        found: 0,
    })?;
    let per = k.div_ceil(BLOCK);
    let both = format.takes_quantised() && weight.terms == Terms::Two;
    let misfit = |_| KernelError::Shape {
        what: "a row of activations has the wrong length",
    };
    for r in worker.items(x.rows()) {
        let from = x.row(x.indices(r));
        let dense = x.nb[0] == 4 && from.cast::<f32>().is_aligned();
        // SAFETY: the row is dense and aligned, and has `k` elements.
        let values = dense.then(|| unsafe { std::slice::from_raw_parts(from.cast::<f32>(), k) });
        let values = if let Some(values) = values.filter(|_| !both) {
            values
        } else if let Some(values) = values {
            row.copy_from_slice(values);
            &*row
        } else {
            for (i, out) in row.iter_mut().enumerate() {
                // SAFETY: `i` is below the size of axis 0.
                *out = unsafe { element(from, x.nb[0], i) };
            }
            &*row
        };
        if !format.takes_quantised() {
            // SAFETY: row `r` is this worker's.
            unsafe { part(&scratch.floats, r * k, k)? }.copy_from_slice(values);
            continue;
        }
        // SAFETY: as above.
        let first = unsafe { part(&scratch.blocks, r * per, per)? };
        quantise(isa, values, first).map_err(misfit)?;
        if both {
            residual(isa, row, first).map_err(misfit)?;
            // SAFETY: the second term of row `r` is this worker's, too.
            let second = unsafe { part(&scratch.blocks, (x.rows() + r) * per, per)? };
            quantise(isa, row, second).map_err(misfit)?;
        }
    }
    worker.barrier()
}

/// Returns the prepared rows `[first, first + n)`.
///
/// # Safety
/// All workers have prepared their rows, and no worker changes them.
unsafe fn prepared<'a>(
    format: &Format,
    scratch: &'a DeviceScratch,
    first: usize,
    n: usize,
) -> Result<Activations<'a>, KernelError> {
    let k = format.part().k();
    let per = k.div_ceil(BLOCK);
    // SAFETY: caller's contract.
    unsafe {
        Ok(match format.takes_quantised() {
            true => Activations::Quantised(part(&scratch.blocks, first * per, n * per)?),
            false => Activations::Float(part(&scratch.floats, first * k, n * k)?),
        })
    }
}

pub(super) struct WorkerScratch {
    pub(super) tiles: Scratch,
    pub(super) row: Vec<f32>,
    pub(super) bytes: Vec<u8>,
}

const MISFIT: KernelError = KernelError::Shape {
    what: "mismatched operands of a product",
};

/// Computes `out = weight · x`. `kept` is true if the previous launch has prepared `x`.
///
/// # Safety
/// Same as [`crate::Kernel::run`]; only this launch's workers use the scratch memory.
pub(super) unsafe fn mul_mat(
    worker: &Worker<'_>,
    isa: Isa,
    (weight, kept): (&Packed, bool),
    [x, out]: [&View; 2],
    shared: &DeviceScratch,
    own: &mut WorkerScratch,
) -> Result<(), KernelError> {
    if out.is_empty() {
        return Ok(());
    }
    let format = &weight.format;
    let m = format.rows();
    ensure(
        out.ne == [m, x.ne[1], x.ne[2], x.ne[3]] && out.dtype == DType::F32,
        "wrong sizes of a product's result",
    )?;
    if !kept {
        // SAFETY: caller's contract.
        unsafe { prepare(worker, isa, weight, x, shared, &mut own.row)? };
    }
    let grain = grain(format);
    // Joins batches of one matrix if their result rows are adjacent.
    let (n, batches) = match weight.n {
        1 => (x.rows(), 1),
        _ => (x.ne[1], x.ne[2] * x.ne[3]),
    };
    let stride = out.nb[1] / 4;
    let regular =
        |axis: usize| out.ne[axis] == 1 || out.nb[axis] == out.nb[axis - 1] * out.ne[axis - 1];
    ensure(
        out.nb[0] == 4 && stride >= m && (weight.n != 1 || regular(2) && regular(3)),
        "wrong strides of a product's result",
    )?;
    for batch in 0..batches {
        let [p, q] = weight.stack;
        let (i2, i3) = (batch % x.ne[2], batch / x.ne[2]);
        let matrix = match weight.n {
            1 => 0,
            _ => {
                ensure(
                    x.ne[2] % p == 0 && x.ne[3] % q == 0,
                    "batches of the weight do not divide batches of the product",
                )?;
                (i3 / (x.ne[3] / q)) * p + i2 / (x.ne[2] / p)
            }
        };
        let to = match weight.n {
            1 => out.ptr,
            _ => out.row([0, i2, i3]),
        };
        for panels in worker.pieces(format.panels(), grain) {
            for &(term, epilogue) in weight.terms.each() {
                // SAFETY: all rows are prepared. The result has `n` columns of `m` rows at `stride`, and this worker
                // writes the piece's panels of the result.
                unsafe {
                    let x = prepared(format, shared, term * x.rows() + batch * n, n)?;
                    let mut to = Output::from_raw(to.cast(), m, stride, n, 1);
                    let matrix = weight.matrix(matrix)?;
                    Product::new(isa, matrix, x, Tokens::First(n), epilogue)
                        .and_then(|p| p.run(panels.clone(), &mut to, &mut own.tiles))
                        .map_err(|_| MISFIT)?;
                }
            }
        }
    }
    Ok(())
}

/// Computes `out[:, slot, token] = weight[ids[slot, token]] · x[:, slot, token]`. Experts outside the window give
/// zero.
///
/// # Safety
/// Same as [`mul_mat`].
pub(super) unsafe fn mul_mat_id(
    worker: &Worker<'_>,
    isa: Isa,
    (weight, window, kept): (&Packed, Option<Interval>, bool),
    [x, ids, out]: [&View; 3],
    shared: &DeviceScratch,
    own: &mut WorkerScratch,
) -> Result<(), KernelError> {
    if out.is_empty() {
        return Ok(());
    }
    let format = &weight.format;
    let m = format.rows();
    let [slots, tokens] = [ids.ne[0], ids.ne[1]];
    let stride = out.nb[1] / 4;
    ensure(
        out.ne == [m, slots, tokens, 1]
            && out.dtype == DType::F32
            && out.nb[0] == 4
            && stride >= m
            && (tokens == 1 || out.nb[2] == out.nb[1] * slots),
        "wrong sizes of the experts' result",
    )?;
    ensure(
        x.ne[2] == tokens && (x.ne[1] == slots || x.ne[1] == 1) && x.ne[3] == 1,
        "wrong sizes of the experts' activations",
    )?;
    if worker.index() == 0 {
        // SAFETY: only this worker uses the lists before the barrier.
        unsafe { route(weight, window, x, ids, shared)? };
    }
    if kept {
        worker.barrier()?;
    } else {
        // SAFETY: caller's contract.
        unsafe { prepare(worker, isa, weight, x, shared, &mut own.row)? };
    }
    // SAFETY: all lists are written, and constant until the next launch.
    let lists = unsafe {
        Lists {
            starts: part(&shared.starts, 0, weight.n + 1)?,
            from: part(&shared.from, 0, slots * tokens)?,
            to: part(&shared.to, 0, slots * tokens)?,
        }
    };
    for panels in worker.pieces(format.panels(), grain(format)) {
        // SAFETY: caller's contract; the piece is this worker's.
        unsafe { experts(isa, weight, &lists, panels, [x, out], shared, own)? };
    }
    Ok(())
}

struct Lists<'a> {
    /// The start of each expert's entries, then the end.
    starts: &'a [u32],
    /// Activation row, per entry.
    from: &'a [u32],
    /// Result column, per entry.
    to: &'a [u32],
}

/// Computes a range of panels of all experts.
///
/// # Safety
/// Same as [`mul_mat_id`]; no other thread writes these rows.
unsafe fn experts(
    isa: Isa,
    weight: &Packed,
    lists: &Lists<'_>,
    panels: Range<usize>,
    [x, out]: [&View; 2],
    shared: &DeviceScratch,
    own: &mut WorkerScratch,
) -> Result<(), KernelError> {
    let format = &weight.format;
    let m = format.rows();
    let (columns, stride) = (out.ne[1] * out.ne[2], out.nb[1] / 4);
    if (lists.starts[weight.n] as usize) < columns {
        // Zeroes columns of experts on other devices.
        for column in 0..columns {
            for row in panels.start * 16..(panels.end * 16).min(m) {
                // SAFETY: the element is inside the result, and its row is this worker's.
                unsafe { out.ptr.cast::<f32>().add(column * stride + row).write(0.0) };
            }
        }
    }
    for expert in 0..weight.n {
        let entries = lists.starts[expert] as usize..lists.starts[expert + 1] as usize;
        if entries.is_empty() {
            continue;
        }
        let tokens = Tokens::Listed {
            from: &lists.from[entries.clone()],
            to: &lists.to[entries],
        };
        for &(term, epilogue) in weight.terms.each() {
            // SAFETY: as in `mul_mat`.
            unsafe {
                let x = prepared(format, shared, term * x.rows(), x.rows())?;
                let mut out = Output::from_raw(out.ptr.cast(), m, stride, columns, 1);
                Product::new(isa, weight.matrix(expert)?, x, tokens, epilogue)
                    .and_then(|p| p.run(panels.clone(), &mut out, &mut own.tiles))
                    .map_err(|_| MISFIT)?;
            }
        }
    }
    Ok(())
}

/// Returns the number of panels that a worker takes at a time: enough for low overhead and sequential reads. It is
/// even because products with many tokens use panels in pairs.
fn grain(format: &Format) -> usize {
    const BYTES: usize = 1 << 17;
    (BYTES / format.panel_bytes().max(1))
        .next_multiple_of(2)
        .max(2)
}

/// Sorts the entries of `ids` by expert.
///
/// # Safety
/// The view's elements are readable; no other thread uses the lists.
unsafe fn route(
    weight: &Packed,
    window: Option<Interval>,
    x: &View,
    ids: &View,
    shared: &DeviceScratch,
) -> Result<(), KernelError> {
    let [slots, tokens] = [ids.ne[0], ids.ne[1]];
    // SAFETY: caller's contract.
    let (starts, from, to) = unsafe {
        (
            part(&shared.starts, 0, weight.n + 1)?,
            part(&shared.from, 0, slots * tokens)?,
            part(&shared.to, 0, slots * tokens)?,
        )
    };
    let expert = |slot: usize, token: usize| -> Result<Option<usize>, KernelError> {
        let at = ids.row([token, 0, 0]).wrapping_add(slot * ids.nb[0]);
        // SAFETY: the element exists.
        let id = unsafe {
            match ids.dtype {
                DType::I64 => at.cast::<i64>().read_unaligned(),
                _ => i64::from(at.cast::<i32>().read_unaligned()),
            }
        };
        let out = |bound: usize| KernelError::Index {
            what: "expert",
            index: id,
            bound,
        };
        let global = usize::try_from(id).map_err(|_| out(weight.n))?;
        match window {
            None if global < weight.n => Ok(Some(global)),
            None => Err(out(weight.n)),
            Some(w) => {
                let local = global.checked_sub(w.start as usize);
                Ok(local.filter(|&l| l < weight.n && l < w.len as usize))
            }
        }
    };
    starts.fill(0);
    for token in 0..tokens {
        for slot in 0..slots {
            if let Some(e) = expert(slot, token)? {
                starts[e + 1] += 1;
            }
        }
    }
    for e in 0..weight.n {
        starts[e + 1] += starts[e];
    }
    for token in 0..tokens {
        for slot in 0..slots {
            if let Some(e) = expert(slot, token)? {
                let at = starts[e] as usize;
                let row = token * x.ne[1] + if x.ne[1] == 1 { 0 } else { slot };
                from[at] = row as u32;
                to[at] = (token * slots + slot) as u32;
                starts[e] += 1;
            }
        }
    }
    for e in (0..weight.n).rev() {
        starts[e + 1] = starts[e];
    }
    starts[0] = 0;
    Ok(())
}
