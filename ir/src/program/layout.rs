use crate::dims::{Bindings, Dim};
use crate::dtype::DType;
use crate::entity::Buffer;
use crate::op::{Op, axis_index};
use crate::types::{RANK, TensorType};

/// The buffer and the layout of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Home {
    /// The buffer.
    pub buffer: Buffer,
    /// The position in the buffer.
    pub layout: Layout,
}

/// The position of a value in a buffer. Element `i` is at `offset + Σ i[axis]·strides[axis]`; the index of axis 0
/// counts blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes from the start of the buffer to the first element.
    pub offset: Dim,
    /// Bytes between neighbours along each axis.
    pub strides: [Dim; RANK],
}

/// A layout for one batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchLayout {
    /// Bytes from the start of the buffer to the first element.
    pub offset: u64,
    /// Bytes between neighbours along each axis; along axis 0, between blocks.
    pub strides: [u64; RANK],
    /// Sizes, in elements.
    pub dims: [u64; RANK],
}

impl Layout {
    /// Returns the dense layout: axis 0 contiguous, rows one after another. `None` on overflow or if rows are not
    /// whole blocks. A row of constant length that ends inside a block includes the whole block.
    pub fn dense(ty: &TensorType) -> Option<Layout> {
        let block = Dim::constant(ty.dtype.block_bytes());
        let count = match ty.dims[0].as_const() {
            Some(len) => Dim::constant(len.div_ceil(ty.dtype.block_len())),
            None => blocks(&ty.dims[0], ty.dtype)?,
        };
        let row = count
            .checked_mul(&block)?
            .checked_add(&Dim::constant(ty.dtype.row_extra()))?;
        let plane = row.checked_mul(&ty.dims[1])?;
        let cube = plane.checked_mul(&ty.dims[2])?;
        Some(Layout {
            offset: Dim::ZERO,
            strides: [block, row, plane, cube],
        })
    }

    /// Returns the layout of `op`'s result as a view of an operand; `None` if the op is not a view or the elements
    /// are unevenly spaced.
    pub fn view(&self, op: &Op, operand: &TensorType, result: &TensorType) -> Option<Layout> {
        match op {
            Op::Permute(op) => {
                let mut strides = [const { Dim::ZERO }; RANK];
                for (from, &to) in op.axes.iter().enumerate() {
                    strides[axis_index(to).ok()?] = self.strides[from].clone();
                }
                let moves_blocks = operand.dtype.is_quantised() && op.axes[0] != 0;
                (!moves_blocks).then(|| Layout {
                    offset: self.offset.clone(),
                    strides,
                })
            }
            Op::Slice(op) => {
                let axis = axis_index(op.axis).ok()?;
                let start = match axis {
                    0 => blocks(&op.start, operand.dtype)?,
                    _ => op.start.clone(),
                };
                let skipped = start.checked_mul(&self.strides[axis])?;
                Some(Layout {
                    offset: self.offset.checked_add(&skipped)?,
                    strides: self.strides.clone(),
                })
            }
            Op::Reshape(_) => Some(Layout {
                offset: self.offset.clone(),
                strides: self.reshape_strides(operand, result)?,
            }),
            _ => None,
        }
    }

    fn reshape_strides(&self, operand: &TensorType, result: &TensorType) -> Option<[Dim; RANK]> {
        let mut runs = self.contiguous_runs(operand)?.into_iter();
        let mut strides = [const { Dim::ZERO }; RANK];
        let mut run: Option<Run> = None;
        for (axis, size) in result.dims.iter().enumerate() {
            // An axis of one index may have any stride; axis 0 steps by blocks.
            if size.is_one() && axis > 0 {
                continue;
            }
            if run.is_none() {
                run = runs.next();
            }
            let Some(current) = run.take() else {
                if size.is_one() {
                    strides[axis] = self.strides[0].clone();
                    continue;
                }
                return None;
            };
            strides[axis] = current.stride(operand.dtype)?;
            let taken = current.taken.checked_mul(size)?;
            if taken != current.size {
                current.size.checked_div(&taken)?;
                run = Some(Run { taken, ..current });
            }
        }
        if run.is_some() || runs.next().is_some() {
            return None;
        }
        // Axes of one index get dense strides, so that equal layouts compare equal.
        for axis in 1..RANK {
            if result.dims[axis].is_one() {
                let below = match axis {
                    1 => blocks(&result.dims[0], result.dtype)?,
                    _ => result.dims[axis - 1].clone(),
                };
                strides[axis] = strides[axis - 1].checked_mul(&below)?;
            }
        }
        Some(strides)
    }

    fn contiguous_runs(&self, ty: &TensorType) -> Option<Vec<Run>> {
        let mut out: Vec<Run> = Vec::new();
        for (axis, size) in ty.dims.iter().enumerate() {
            if size.is_one() && axis > 0 {
                continue;
            }
            if let Some(last) = out.last_mut()
                && last.end_offset(ty.dtype)? == self.strides[axis]
            {
                last.size = last.size.checked_mul(size)?;
                continue;
            }
            out.push(Run {
                in_blocks: axis == 0,
                size: size.clone(),
                step: self.strides[axis].clone(),
                taken: Dim::ONE,
            });
        }
        Some(out)
    }

    /// Returns the bytes from the buffer's start to the last element's end, for the largest batch of a shape. Returns
    /// 0 for an empty value; `None` on overflow.
    pub fn span_bytes(&self, ty: &TensorType, most: &Bindings) -> Option<u64> {
        if ty.dims.iter().any(|d| d.upper_bound(most) == Some(0)) {
            return Some(0);
        }
        match (self.each_axis(ty, most), self.all_axes(ty, most)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn each_axis(&self, ty: &TensorType, most: &Bindings) -> Option<u64> {
        let mut end = self.offset.upper_bound(most)?;
        let last = ty.dtype.block_bytes().checked_add(ty.dtype.row_extra())?;
        end = end.checked_add(last)?;
        for (axis, size) in ty.dims.iter().enumerate() {
            let size = size.upper_bound(most)?;
            let count = match axis {
                0 => size.div_ceil(ty.dtype.block_len()),
                _ => size,
            };
            let stride = self.strides[axis].upper_bound(most)?;
            end = end.checked_add(count.saturating_sub(1).checked_mul(stride)?)?;
        }
        Some(end)
    }

    /// Returns a bound on the span computed as one polynomial, for dependent axes (`n_seqs · n_seq_tokens ≤ n_tokens`).
    fn all_axes(&self, ty: &TensorType, most: &Bindings) -> Option<u64> {
        let mut end = self.offset.checked_add(&Dim::constant(
            ty.dtype.block_bytes().checked_add(ty.dtype.row_extra())?,
        ))?;
        for (axis, size) in ty.dims.iter().enumerate() {
            let count = match axis {
                0 => blocks(size, ty.dtype)?,
                _ => size.clone(),
            };
            let stride = &self.strides[axis];
            end = end
                .checked_add(&count.checked_mul(stride)?)?
                .checked_sub(stride)?;
        }
        end.upper_bound(most)
    }

    /// Returns the layout for one batch; `None` if a size cannot be evaluated.
    pub fn locate(&self, ty: &TensorType, sizes: &Bindings) -> Option<BatchLayout> {
        let mut out = BatchLayout {
            offset: self.offset.eval(sizes)?,
            ..BatchLayout::default()
        };
        for axis in 0..RANK {
            out.strides[axis] = self.strides[axis].eval(sizes)?;
            out.dims[axis] = ty.dims[axis].eval(sizes)?;
        }
        Some(out)
    }

    /// True if the value is contiguous.
    pub fn is_dense(&self, ty: &TensorType) -> bool {
        Layout::dense(ty).is_some_and(|d| d.strides == self.strides)
    }
}

struct Run {
    /// True if the axes begin with axis 0, whose stride counts blocks.
    in_blocks: bool,
    size: Dim,
    step: Dim,
    taken: Dim,
}

impl Run {
    fn stride(&self, dtype: DType) -> Option<Dim> {
        self.bytes(&self.taken, dtype)
    }

    fn end_offset(&self, dtype: DType) -> Option<Dim> {
        self.bytes(&self.size, dtype)
    }

    fn bytes(&self, elements: &Dim, dtype: DType) -> Option<Dim> {
        if !self.in_blocks || elements.is_one() {
            return elements.checked_mul(&self.step);
        }
        blocks(elements, dtype)?.checked_mul(&self.step)
    }
}

fn blocks(elements: &Dim, dtype: DType) -> Option<Dim> {
    elements.checked_div(&Dim::constant(dtype.block_len()))
}
