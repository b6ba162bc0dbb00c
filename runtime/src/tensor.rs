use std::borrow::Cow;

use tpc_ir::{Bindings, DType, Dim, RANK, TensorType};

use crate::error::ExecError;

/// Elements, axis 0 fastest.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// Real numbers from arithmetic.
    F64(Vec<f64>),
    /// Real numbers of a dequantised weight.
    F32(Vec<f32>),
    /// Indices and positions.
    Int(Vec<i64>),
}

impl Data {
    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        match self {
            Data::F64(v) => v.len(),
            Data::F32(v) => v.len(),
            Data::Int(v) => v.len(),
        }
    }

    /// True if there are zero elements.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A tensor type with known sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Declared element type.
    pub dtype: DType,
    /// Sizes.
    pub dims: [usize; RANK],
}

impl Shape {
    /// Returns the shape of type `ty` under `bindings`.
    ///
    /// # Errors
    /// Returns [`ExecError::Size`] if a size cannot be evaluated.
    pub fn of(ty: &TensorType, bindings: &Bindings) -> Result<Shape, ExecError> {
        let mut dims = [0; RANK];
        for (out, dim) in dims.iter_mut().zip(&ty.dims) {
            *out = size_of(dim, bindings)?;
        }
        Ok(Shape {
            dtype: ty.dtype,
            dims,
        })
    }

    /// Returns the bytes of a tensor of this shape on a device. A partial last block counts as a whole block.
    pub fn bytes(&self) -> u64 {
        let blocks = (self.dims[0] as u64).div_ceil(self.dtype.block_len());
        let rows = self.dims[1..].iter().map(|&d| d as u64);
        rows.fold(blocks.saturating_mul(self.dtype.block_bytes()), |a, d| {
            a.saturating_mul(d)
        })
    }
}

pub(super) fn size_of(dim: &Dim, bindings: &Bindings) -> Result<usize, ExecError> {
    dim.eval(bindings)
        .and_then(|n| usize::try_from(n).ok())
        .ok_or_else(|| ExecError::Size {
            what: dim.to_string(),
        })
}

/// Returns the number of elements. The product of any of the sizes fits `usize`, even if another size is 0.
pub(super) fn count(dims: [usize; RANK]) -> Result<usize, ExecError> {
    let bound = dims
        .iter()
        .try_fold(1_usize, |a, &d| a.checked_mul(d.max(1)));
    let empty = dims.contains(&0);
    bound
        .map(|n| if empty { 0 } else { n })
        .ok_or_else(|| too_large(dims))
}

fn too_large(dims: [usize; RANK]) -> ExecError {
    ExecError::Size {
        what: format!("{dims:?}"),
    }
}

pub(super) fn buffer<T>(dims: [usize; RANK]) -> Result<Vec<T>, ExecError> {
    let mut out = Vec::new();
    out.try_reserve_exact(count(dims)?)
        .map_err(|_| too_large(dims))?;
    Ok(out)
}

/// A tensor of the reference executor with up to four axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dims: [usize; RANK],
    data: Data,
}

impl Tensor {
    /// Returns a tensor of these sizes and elements.
    ///
    /// # Errors
    /// Returns [`ExecError::Shape`] if the number of elements does not match the sizes.
    pub fn new(dims: [usize; RANK], data: Data) -> Result<Tensor, ExecError> {
        if count(dims)? != data.len() {
            return Err(ExecError::Shape {
                what: "the number of elements".into(),
                expected: dims,
                found: [data.len(), 1, 1, 1],
            });
        }
        Ok(Tensor { dims, data })
    }

    /// Returns a tensor of real numbers.
    ///
    /// # Errors
    /// Returns the errors of [`Self::new`].
    pub fn reals_of(dims: [usize; RANK], data: Vec<f64>) -> Result<Tensor, ExecError> {
        Tensor::new(dims, Data::F64(data))
    }

    /// Returns a tensor of integers.
    ///
    /// # Errors
    /// Returns the errors of [`Self::new`].
    pub fn ints_of(dims: [usize; RANK], data: Vec<i64>) -> Result<Tensor, ExecError> {
        Tensor::new(dims, Data::Int(data))
    }

    /// Returns a tensor of zeros.
    ///
    /// # Errors
    /// Returns [`ExecError::Size`] if the tensor does not fit memory.
    pub fn zeros(shape: Shape) -> Result<Tensor, ExecError> {
        let (dims, n) = (shape.dims, count(shape.dims)?);
        let data = if shape.dtype.is_integer() {
            let mut v = buffer(dims)?;
            v.resize(n, 0);
            Data::Int(v)
        } else {
            let mut v = buffer(dims)?;
            v.resize(n, 0.0);
            Data::F64(v)
        };
        Ok(Tensor { dims, data })
    }

    /// Returns the sizes.
    pub const fn dims(&self) -> [usize; RANK] {
        self.dims
    }

    /// Returns the elements.
    pub const fn data(&self) -> &Data {
        &self.data
    }

    /// Returns the elements and drops the sizes.
    pub fn into_data(self) -> Data {
        self.data
    }

    /// Returns the number of elements.
    pub const fn len(&self) -> usize {
        self.data.len()
    }

    /// True if the tensor has zero elements.
    pub const fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Returns the elements as f64.
    ///
    /// # Errors
    /// Returns [`ExecError::Elements`] if the elements are integers.
    pub fn reals(&self) -> Result<Cow<'_, [f64]>, ExecError> {
        match &self.data {
            Data::F64(v) => Ok(Cow::Borrowed(v)),
            Data::F32(v) => Ok(Cow::Owned(v.iter().map(|&x| f64::from(x)).collect())),
            Data::Int(_) => Err(ExecError::Elements {
                what: "the tensor",
                expected: "real",
                found: "integer",
            }),
        }
    }

    /// Returns the elements as integers.
    ///
    /// # Errors
    /// Returns [`ExecError::Elements`] if the elements are real.
    pub fn ints(&self) -> Result<&[i64], ExecError> {
        match &self.data {
            Data::Int(v) => Ok(v),
            Data::F64(_) | Data::F32(_) => Err(ExecError::Elements {
                what: "the tensor",
                expected: "integer",
                found: "real",
            }),
        }
    }

    /// Returns the type for inference: constant sizes, f32 for reals, i64 for integers.
    pub(super) fn constant_type(&self) -> TensorType {
        let dtype = match self.data {
            Data::F64(_) | Data::F32(_) => DType::F32,
            Data::Int(_) => DType::I64,
        };
        TensorType {
            dtype,
            dims: self.dims.map(|d| Dim::constant(d as u64)),
        }
    }

    pub(super) fn expect(&self, what: &'static str, shape: &Shape) -> Result<(), ExecError> {
        if self.dims != shape.dims {
            return Err(ExecError::Shape {
                what: what.into(),
                expected: shape.dims,
                found: self.dims,
            });
        }
        let name = |int| if int { "integer" } else { "real" };
        let (found, wanted) = (matches!(self.data, Data::Int(_)), shape.dtype.is_integer());
        if found == wanted {
            return Ok(());
        }
        Err(ExecError::Elements {
            what,
            expected: name(wanted),
            found: name(found),
        })
    }

    /// Returns a tensor whose element at an index is this tensor's element at `offset + Σ index·stride`.
    pub(super) fn strided(
        &self,
        dims: [usize; RANK],
        strides: [usize; RANK],
        offset: usize,
    ) -> Result<Tensor, ExecError> {
        let data = match &self.data {
            Data::F64(v) => Data::F64(strided(v, dims, strides, offset)?),
            Data::F32(v) => Data::F32(strided(v, dims, strides, offset)?),
            Data::Int(v) => Data::Int(strided(v, dims, strides, offset)?),
        };
        Ok(Tensor { dims, data })
    }

    pub(super) const fn strides(&self) -> [usize; RANK] {
        let [a, b, c, _] = self.dims;
        [1, a, a * b, a * b * c]
    }

    /// Returns the indices `[start, start + len)` along `axis`, which must exist.
    pub(super) fn slice(&self, axis: usize, start: usize, len: usize) -> Result<Tensor, ExecError> {
        let mut dims = self.dims;
        dims[axis] = len;
        self.strided(dims, self.strides(), start * self.strides()[axis])
    }
}

fn strided<T: Copy>(
    src: &[T],
    dims: [usize; RANK],
    strides: [usize; RANK],
    offset: usize,
) -> Result<Vec<T>, ExecError> {
    let mut out = buffer(dims)?;
    if dims.contains(&0) {
        return Ok(out);
    }
    for i3 in 0..dims[3] {
        for i2 in 0..dims[2] {
            for i1 in 0..dims[1] {
                let at = offset + i1 * strides[1] + i2 * strides[2] + i3 * strides[3];
                if strides[0] == 1 {
                    out.extend_from_slice(&src[at..at + dims[0]]);
                } else {
                    out.extend((0..dims[0]).map(|i0| src[at + i0 * strides[0]]));
                }
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_must_fill_the_sizes() {
        let e = Tensor::reals_of([2, 3, 1, 1], vec![0.0; 5]).expect_err("one too few");
        assert_eq!(e.code(), "TPC0503");
        let huge = Shape {
            dtype: DType::F32,
            dims: [usize::MAX, 2, 1, 1],
        };
        assert_eq!(
            Tensor::zeros(huge).expect_err("overflows").code(),
            "TPC0505"
        );
        let huge = Shape {
            dtype: DType::F32,
            dims: [usize::MAX / 16, 1, 1, 1],
        };
        assert_eq!(
            Tensor::zeros(huge).expect_err("too large").code(),
            "TPC0505"
        );
    }

    #[test]
    fn bytes_count_blocks() {
        let shape = |dtype, n| Shape {
            dtype,
            dims: [n, 3, 1, 1],
        };
        assert_eq!(shape(DType::F16, 5).bytes(), 30);
        assert_eq!(shape(DType::Q8_0, 64).bytes(), 204);
        assert_eq!(shape(DType::Q8_0, 33).bytes(), 204);
        assert_eq!(shape(DType::Q8_0, 0).bytes(), 0);
    }
}
