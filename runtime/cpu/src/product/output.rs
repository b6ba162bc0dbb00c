//! Results of products.
#![expect(unsafe_code, reason = "threads write rows of one matrix")]

use super::ProductError;
use super::layout::ROWS;
use std::marker::PhantomData;
use std::ops::Range;

/// Results with one column per token: row `r` of token `t` is element `t·stride + r`. Each root (see
/// [`Part`](super::Part)) has such a matrix, in sequence.
#[derive(Debug)]
pub struct Output<'a> {
    ptr: *mut f32,
    stride: usize,
    tokens: usize,
    roots: usize,
    rows: Range<usize>,
    data: PhantomData<&'a mut [f32]>,
}

// SAFETY: an output borrows its rows exclusively; for `from_raw`, the caller guarantees this.
unsafe impl Send for Output<'_> {}

impl<'a> Output<'a> {
    /// Wraps `data`, with a column of `stride` elements per token. The last column may be only `rows` elements long.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if columns overlap, or [`ProductError::Length`] if a root does not have a
    /// whole column.
    pub fn new(
        data: &'a mut [f32],
        rows: usize,
        stride: usize,
        roots: usize,
    ) -> Result<Output<'a>, ProductError> {
        if rows > stride || rows == 0 || roots == 0 {
            return Err(ProductError::Shape {
                what: "the rows exceed the stride, or there are no rows or roots",
            });
        }
        let columns = if data.len() < rows {
            0
        } else {
            (data.len() - rows) / stride + 1
        };
        if columns < roots {
            return Err(ProductError::Length {
                what: "results",
                expected: (roots - 1).saturating_mul(stride).saturating_add(rows),
                found: data.len(),
            });
        }
        Ok(Output {
            ptr: data.as_mut_ptr(),
            stride,
            tokens: columns / roots,
            roots,
            rows: 0..rows,
            data: PhantomData,
        })
    }

    /// Wraps the results of `tokens` tokens at `ptr`, for threads that share a matrix.
    ///
    /// # Safety
    /// `((roots·tokens - 1)·stride + rows)` f32 are at `ptr` for as long as the output lives. No other thread reads
    /// or writes the rows and tokens that products write through this output.
    pub unsafe fn from_raw(
        ptr: *mut f32,
        rows: usize,
        stride: usize,
        tokens: usize,
        roots: usize,
    ) -> Output<'a> {
        Output {
            ptr,
            stride,
            tokens,
            roots,
            rows: 0..rows,
            data: PhantomData,
        }
    }

    /// Splits the results at row `row`, for two threads.
    ///
    /// # Errors
    /// Returns [`ProductError::Shape`] if the output does not have the row.
    pub fn split_at(self, row: usize) -> Result<(Output<'a>, Output<'a>), ProductError> {
        if !(self.rows.start..=self.rows.end).contains(&row) {
            return Err(ProductError::Shape {
                what: "the row to split at is not in the results",
            });
        }
        let part = |rows| Output { rows, ..self };
        Ok((part(self.rows.start..row), part(row..self.rows.end)))
    }

    /// Returns the rows that products may write.
    pub fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    /// Returns the number of tokens.
    pub const fn tokens(&self) -> usize {
        self.tokens
    }

    /// Returns the number of roots.
    pub const fn roots(&self) -> usize {
        self.roots
    }

    /// True if products may write the rows of these panels, in a matrix of `rows` rows.
    pub(super) fn has_panels(&self, panels: &Range<usize>, rows: usize) -> bool {
        let (start, end) = (panels.start * ROWS, (panels.end * ROWS).min(rows));
        start >= end || (self.rows.start <= start && end <= self.rows.end)
    }

    /// Writes a panel's rows of one token. The caller has checked [`Output::has_panels`], token and root.
    pub(super) fn write(&mut self, at: Place, values: &[f32; ROWS], epilogue: &Epilogue) {
        let start = at.panel * ROWS;
        let n = at.end.saturating_sub(start).min(ROWS);
        debug_assert!(at.token < self.tokens && at.root < self.roots);
        debug_assert!(self.rows.start <= start && start + n <= self.rows.end);
        let column = (at.root * self.tokens + at.token) * self.stride;
        // SAFETY: the rows and the token belong to the output, so they are inside the borrow, or guaranteed by the
        // caller of `from_raw`.
        let out = unsafe { std::slice::from_raw_parts_mut(self.ptr.add(column + start), n) };
        let bias = epilogue.bias.and_then(|bias| bias.get(start..start + n));
        match (epilogue.write, bias) {
            (Write::Set, None) if n == ROWS => out.copy_from_slice(values),
            (Write::Set, None) => out.copy_from_slice(&values[..n]),
            (Write::Set, Some(bias)) => {
                for ((out, value), bias) in out.iter_mut().zip(values).zip(bias) {
                    *out = value + bias;
                }
            }
            (Write::Add, None) => {
                for (out, value) in out.iter_mut().zip(values) {
                    *out += value;
                }
            }
            (Write::Add, Some(bias)) => {
                for ((out, value), bias) in out.iter_mut().zip(values).zip(bias) {
                    *out += value + bias;
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub panel: usize,
    pub token: usize,
    pub root: usize,
    /// Number of rows of the matrix.
    pub end: usize,
}

/// Operations on a result before it is stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Writes, or adds to, the output elements.
    pub write: Write,
    /// One number per row to add to results.
    pub bias: Option<&'a [f32]>,
}

/// The storage mode of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Write {
    /// Replaces the old value.
    #[default]
    Set,
    /// Adds to the old value.
    Add,
}
