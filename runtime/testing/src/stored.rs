//! Tensors in random memory layouts.

use tpc_ir::DType;
use tpc_runtime::quant::{dequantise, quantise};
use tpc_runtime::{Data, Shape, Tensor};

use crate::random::Random;

/// A tensor in memory: bytes, and the offset and strides of the elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    bytes: Vec<u8>,
    dtype: DType,
    dims: [usize; 4],
    strides: [usize; 4],
    offset: usize,
}

impl Stored {
    /// Makes a tensor filled with a pattern, with random gaps and order of axes.
    pub fn poison(shape: Shape, random: &Random) -> Stored {
        let Shape { dtype, dims } = shape;
        let (block, unit) = (dtype.block_len() as usize, dtype.block_bytes() as usize);
        let mut counts = dims;
        counts[0] = dims[0].div_ceil(block);
        let mut order = [0, 1, 2, 3];
        if random.one_in(2) {
            // Blocks of a row stay adjacent in quantised tensors and half of the others.
            let keep = block > 1 || random.one_in(2);
            let first = usize::from(keep);
            let rest = random.order::<3>();
            for (i, r) in rest.into_iter().enumerate() {
                order[1 + i] = 1 + r;
            }
            if first == 0 {
                order = random.order::<4>();
            }
        }
        let gaps = random.one_in(2);
        let mut strides = [0; 4];
        let mut size = unit;
        for (i, &axis) in order.iter().enumerate() {
            if gaps && i > 0 && random.one_in(2) || random.one_in(16) {
                size += unit * random.within(1, 3);
            }
            strides[axis] = size;
            size *= counts[axis].max(1);
        }
        let offset = if gaps {
            unit * random.below(3) + random.below(3)
        } else {
            0
        };
        Stored {
            bytes: vec![0xa5; offset + size + unit + 5],
            dtype,
            dims,
            strides,
            offset,
        }
    }

    /// Stores elements, rounded to `dtype`, in a random layout.
    pub fn of(dtype: DType, dims: [usize; 4], data: &Data, random: &Random) -> Stored {
        let mut stored = Stored::poison(Shape { dtype, dims }, random);
        stored.write(data);
        stored
    }

    /// Writes elements, rounded to the tensor's type.
    pub fn write(&mut self, data: &Data) {
        let dtype = self.dtype;
        let block = dtype.block_len() as usize;
        for (i, at) in self.places().into_iter().enumerate() {
            let bytes = match data {
                Data::Int(v) => match dtype {
                    DType::I64 => v[i].to_le_bytes().to_vec(),
                    DType::I16 => (v[i] as i16).to_le_bytes().to_vec(),
                    _ => (v[i] as i32).to_le_bytes().to_vec(),
                },
                Data::F64(v) => {
                    let values: Vec<f32> =
                        v[i * block..][..block].iter().map(|&x| x as f32).collect();
                    let mut bytes = Vec::new();
                    quantise(dtype, &values, &mut bytes).expect("an encoder");
                    bytes
                }
                Data::F32(_) => panic!("cases contain only f64 and integers"),
            };
            self.bytes[at..at + bytes.len()].copy_from_slice(&bytes);
        }
    }

    fn places(&self) -> Vec<usize> {
        let blocks = self.dims[0] / self.dtype.block_len() as usize;
        let [_, n1, n2, n3] = self.dims;
        let mut out = Vec::new();
        for i3 in 0..n3 {
            for i2 in 0..n2 {
                for i1 in 0..n1 {
                    for i0 in 0..blocks {
                        let [s0, s1, s2, s3] = self.strides;
                        out.push(self.offset + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3);
                    }
                }
            }
        }
        out
    }

    /// Returns the elements as a reference tensor.
    pub fn tensor(&self) -> Tensor {
        let (block, unit) = (
            self.dtype.block_len() as usize,
            self.dtype.block_bytes() as usize,
        );
        let places = self.places();
        let data = if self.dtype.is_integer() {
            let int = |at: usize| match self.dtype {
                DType::I64 => i64::from_le_bytes(self.bytes[at..at + 8].try_into().expect("8")),
                DType::I16 => {
                    i16::from_le_bytes(self.bytes[at..at + 2].try_into().expect("2")).into()
                }
                _ => i32::from_le_bytes(self.bytes[at..at + 4].try_into().expect("4")).into(),
            };
            Data::Int(places.into_iter().map(int).collect())
        } else {
            let mut out = Vec::new();
            let mut values = vec![0.0; block];
            for at in places {
                let bytes = &self.bytes[at..at + unit];
                dequantise(self.dtype, bytes, &mut values).expect("a decoder");
                out.extend(values.iter().map(|&x| f64::from(x)));
            }
            Data::F64(out)
        };
        Tensor::new(self.dims, data).expect("the number of elements matches the sizes")
    }

    /// Returns the element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns all bytes, including gaps.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns all bytes for writing, including gaps.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns a tensor without gaps of the same type and sizes, filled with a pattern.
    #[must_use]
    pub fn dense(self) -> Stored {
        let (block, unit) = (self.dtype.block_len(), self.dtype.block_bytes() as usize);
        let [n0, n1, n2, n3] = self.dims;
        let row = n0 / block as usize * unit;
        Stored {
            bytes: vec![0xa5; row * n1 * n2 * n3],
            strides: [unit, row, row * n1, row * n1 * n2],
            offset: 0,
            ..self
        }
    }

    /// Copies the elements to a tensor without gaps.
    #[must_use]
    pub fn packed(self) -> Stored {
        let unit = self.dtype.block_bytes() as usize;
        let blocks = self.places();
        let blocks = blocks.iter().flat_map(|at| &self.bytes[*at..at + unit]);
        let bytes = blocks.copied().collect();
        Stored {
            bytes,
            ..self.dense()
        }
    }

    /// Copies the elements to a tensor without gaps whose rows of axis 2 are adjacent, like the heads of a cache's cell.
    #[must_use]
    pub fn cell_major(self) -> Stored {
        let [_, n1, n2, _] = self.dims;
        let packed = self.packed();
        let [unit, row, _, of_stream] = packed.strides;
        let mut out = Stored {
            strides: [unit, row * n2, row, of_stream],
            ..packed.clone()
        };
        for (i, from) in packed.bytes.chunks(row.max(1)).enumerate() {
            let (i1, i2, i3) = (i % n1, i / n1 % n2, i / n1 / n2);
            let at = i3 * of_stream + i2 * row + i1 * row * n2;
            out.bytes[at..at + row].copy_from_slice(from);
        }
        out
    }

    /// Returns the offset of the first element in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the size of each axis.
    pub fn dims(&self) -> [usize; 4] {
        self.dims
    }

    /// Returns the distance between indices along each axis, in bytes; along axis 0, between blocks.
    pub fn strides(&self) -> [usize; 4] {
        self.strides
    }

    /// Drops leading bytes until the offset is a multiple of 16, for devices that read whole elements only.
    #[must_use]
    pub fn aligned(mut self) -> Stored {
        let skipped = self.offset % 16;
        self.bytes.drain(..skipped);
        self.offset -= skipped;
        self
    }

    /// True if the gaps equal those in `other`, which must have the same layout.
    pub fn same_gaps(&self, other: &Stored) -> bool {
        let (mut a, mut b) = (self.bytes.clone(), other.bytes.clone());
        let unit = self.dtype.block_bytes() as usize;
        for at in self.places() {
            a[at..at + unit].fill(0);
            b[at..at + unit].fill(0);
        }
        a == b
    }
}
