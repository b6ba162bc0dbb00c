//! Tensors in memory.

use tpc_ir::program::BatchLayout;
use tpc_ir::{DType, RANK};

/// A tensor in memory, in ggml's order of axes.
///
/// Element `(i0, i1, i2, i3)` is `Σ i·nb` bytes after `ptr`, unaligned. For a type with blocks, `nb[0]` is the
/// distance of blocks and `i0` counts blocks. A view is a pointer with a shape: creating a view is safe, but a kernel
/// that uses it must ensure that the bytes exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// The address of the first element.
    pub ptr: *mut u8,
    /// The element type.
    pub dtype: DType,
    /// Sizes in elements.
    pub ne: [usize; RANK],
    /// Distance between neighbours along each axis, in bytes; along axis 0, between blocks.
    pub nb: [usize; RANK],
}

// SAFETY: a view is an address and numbers. Its users synchronise their accesses to the bytes.
#[allow(unsafe_code)]
unsafe impl Send for View {}
// SAFETY: as above; a shared reference to a view gives no access to the bytes.
#[allow(unsafe_code)]
unsafe impl Sync for View {}

impl View {
    /// Creates a view.
    pub const fn new(ptr: *mut u8, dtype: DType, ne: [usize; RANK], nb: [usize; RANK]) -> View {
        View { ptr, dtype, ne, nb }
    }

    /// Returns a view without gaps; axis 0 is fastest. For a type with blocks, `ne[0]` is whole blocks.
    pub const fn dense(ptr: *mut u8, dtype: DType, ne: [usize; RANK]) -> View {
        let row = ne[0].div_ceil(dtype.block_len() as usize) * dtype.block_bytes() as usize;
        let nb = [
            dtype.block_bytes() as usize,
            row,
            row * ne[1],
            row * ne[1] * ne[2],
        ];
        View { ptr, dtype, ne, nb }
    }

    /// Returns the view with the offset and strides of `at`, in the arena at address `arena`.
    pub const fn located(arena: *mut u8, dtype: DType, at: &BatchLayout) -> View {
        let [n0, n1, n2, n3] = at.dims;
        let [b0, b1, b2, b3] = at.strides;
        View {
            ptr: arena.wrapping_add(at.offset as usize),
            dtype,
            ne: [n0 as usize, n1 as usize, n2 as usize, n3 as usize],
            nb: [b0 as usize, b1 as usize, b2 as usize, b3 as usize],
        }
    }

    /// Returns a dense view of f32, or `None` if the slice has the wrong length.
    pub fn of_f32(data: &mut [f32], ne: [usize; RANK]) -> Option<View> {
        let n: usize = ne.iter().product();
        (n == data.len()).then(|| View::dense(data.as_mut_ptr().cast(), DType::F32, ne))
    }

    /// Returns a dense view of bytes as `dtype`, or `None` if the slice has the wrong length.
    pub fn of_bytes(data: &mut [u8], dtype: DType, ne: [usize; RANK]) -> Option<View> {
        let rows: usize = ne[1..].iter().product();
        let bytes = dtype.bytes(ne[0] as u64)? as usize * rows;
        (bytes == data.len()).then(|| View::dense(data.as_mut_ptr(), dtype, ne))
    }

    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        self.ne[0] * self.rows()
    }

    /// True if there are no elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of rows: the product of the sizes of axes 1 to 3.
    pub const fn rows(&self) -> usize {
        self.ne[1] * self.ne[2] * self.ne[3]
    }

    /// Returns row `row`'s indices along axes 1 to 3; axis 1 is fastest. The view must not be empty.
    pub const fn indices(&self, row: usize) -> [usize; 3] {
        let [_, n1, n2, _] = self.ne;
        [row % n1, row / n1 % n2, row / n1 / n2]
    }

    /// Returns the address of the row with these indices.
    pub const fn row(&self, [i1, i2, i3]: [usize; 3]) -> *mut u8 {
        let at = i1 * self.nb[1] + i2 * self.nb[2] + i3 * self.nb[3];
        self.ptr.wrapping_add(at)
    }

    /// True if rows are contiguous.
    pub const fn has_dense_rows(&self) -> bool {
        self.nb[0] == self.dtype.block_bytes() as usize || self.ne[0] <= 1
    }

    /// Returns the elements as one row, or `None` if they have gaps or another order.
    pub const fn flat(&self) -> Option<View> {
        let block = self.dtype.block_len() as usize;
        let mut expected = self.ne[0] / block * self.dtype.block_bytes() as usize;
        if !self.ne[0].is_multiple_of(block) || !self.has_dense_rows() {
            return None;
        }
        let mut axis = 1;
        while axis < RANK {
            if self.ne[axis] != 1 && self.nb[axis] != expected {
                return None;
            }
            expected *= self.ne[axis];
            axis += 1;
        }
        Some(View::dense(self.ptr, self.dtype, [self.len(), 1, 1, 1]))
    }

    /// Reorders axes: axis `i` of the result is this view's axis `order[i]`.
    #[must_use]
    pub const fn permuted(&self, order: [usize; RANK]) -> View {
        let [a, b, c, d] = order;
        let (ne, nb) = (&self.ne, &self.nb);
        View {
            ptr: self.ptr,
            dtype: self.dtype,
            ne: [ne[a], ne[b], ne[c], ne[d]],
            nb: [nb[a], nb[b], nb[c], nb[d]],
        }
    }

    /// Returns `len` elements along `axis`, starting at `start`. Along axis 0 of a type with blocks, `start` is a
    /// block boundary.
    #[must_use]
    pub const fn sliced(&self, axis: usize, start: usize, len: usize) -> View {
        let unit = if axis == 0 {
            self.dtype.block_len() as usize
        } else {
            1
        };
        let mut out = *self;
        out.ptr = self.ptr.wrapping_add(start / unit * self.nb[axis]);
        out.ne[axis] = len;
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_of_a_dense_view_count_blocks() {
        let v = View::dense(std::ptr::null_mut(), DType::Q8_0, [64, 3, 2, 1]);
        assert_eq!(v.nb, [34, 68, 204, 408]);
        assert_eq!(v.indices(5), [2, 1, 0]);
        assert_eq!(v.row([2, 1, 0]) as usize, 340);
        assert_eq!(v.sliced(0, 32, 32).ptr as usize, 34);
    }

    #[test]
    fn slices_must_hold_the_elements() {
        let mut data = [0.0; 6];
        assert!(View::of_f32(&mut data, [3, 2, 1, 1]).is_some());
        assert!(View::of_f32(&mut data, [3, 3, 1, 1]).is_none());
        let mut bytes = [0; 68];
        assert!(View::of_bytes(&mut bytes, DType::Q8_0, [32, 2, 1, 1]).is_some());
        assert!(View::of_bytes(&mut bytes, DType::Q8_0, [33, 2, 1, 1]).is_none());
    }
}
