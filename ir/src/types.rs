//! Tensor types: an element type and four sizes in ggml's order.

use std::fmt;

use crate::dims::{Bindings, Dim, Symbol};
use crate::dtype::DType;

/// Axes of a tensor; ggml's tensors have four, with trailing sizes of 1.
pub const RANK: usize = 4;

/// Element type and shape. `dims[0]` is the contiguous axis ("axis 0").
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes, contiguous axis first.
    pub dims: [Dim; RANK],
}

impl TensorType {
    /// Returns a type with up to four sizes; missing sizes are 1.
    ///
    /// # Panics
    /// Panics if there are more than four sizes.
    pub fn new<const K: usize>(dtype: DType, dims: [Dim; K]) -> TensorType {
        const { assert!(K <= RANK) };
        let mut out = [Dim::ONE, Dim::ONE, Dim::ONE, Dim::ONE];
        for (o, d) in out.iter_mut().zip(dims) {
            *o = d;
        }
        TensorType { dtype, dims: out }
    }

    /// Returns the type with other elements.
    #[must_use]
    pub fn with_dtype(&self, dtype: DType) -> TensorType {
        TensorType {
            dtype,
            dims: self.dims.clone(),
        }
    }

    /// Returns the type with one size changed.
    #[must_use]
    pub fn with_dim(&self, axis: usize, dim: Dim) -> TensorType {
        let mut t = self.clone();
        t.dims[axis] = dim;
        t
    }

    /// True if an axis counts cells of a KV cache.
    pub fn counts_cells(&self) -> bool {
        let cells = [Symbol::NCtx, Symbol::NCtxSwa];
        self.dims
            .iter()
            .any(|d| cells.into_iter().any(|s| d.mentions(s)))
    }

    /// Returns the number of elements; `None` on overflow.
    pub fn elements(&self) -> Option<Dim> {
        Dim::product(&self.dims)
    }

    /// Returns the bytes of the packed tensor for one batch; `None` on overflow. Partial blocks count in proportion.
    pub fn bytes(&self, bindings: &Bindings) -> Option<u64> {
        let product = |dims: &[Dim]| {
            let mut sizes = dims.iter().map(|d| d.eval(bindings));
            sizes.try_fold(1_u128, |n, d| n.checked_mul(d?.into()))
        };
        let (row, rows) = (product(&self.dims[..1])?, product(&self.dims[1..])?);
        let blocks = row
            .checked_mul(rows)?
            .checked_mul(self.dtype.block_bytes().into())?
            .div_ceil(self.dtype.block_len().into());
        let beside = match row {
            0 => 0,
            _ => rows.checked_mul(self.dtype.row_extra().into())?,
        };
        u64::try_from(blocks.checked_add(beside)?).ok()
    }
}

/// Prints `f32[4096, n_tokens]`, without trailing sizes of 1.
impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self
            .dims
            .iter()
            .rposition(|d| !d.is_one())
            .map_or(1, |i| i + 1);
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.dims[..rank].iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}
