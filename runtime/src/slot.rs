use tpc_ir::{DType, RANK, TensorType};

use crate::error::ExecError;
use crate::tensor::{Data, Shape, Tensor};

/// The destination of an input: memory of an executor, or a tensor to create. The host writes each element once, axis 0
/// fastest. If the host's sizes differ from the slot's, the slot stays unwritten.
#[derive(Debug)]
pub struct Slot<'a> {
    dims: [usize; RANK],
    memory: SlotMemory<'a>,
}

/// A [`Slot`]'s memory.
#[derive(Debug)]
pub enum SlotMemory<'a> {
    /// An i32 input.
    I32(&'a mut [i32]),
    /// An i64 input.
    I64(&'a mut [i64]),
    /// An f32 input.
    F32(&'a mut [f32]),
    /// Bytes of an input of another type.
    Packed(DType, &'a mut [u8]),
    /// A tensor of any type.
    Tensor(&'a mut Option<Tensor>),
}

impl<'a> Slot<'a> {
    /// Returns a slot of these sizes.
    ///
    /// # Errors
    /// Returns [`ExecError::Shape`] if the memory has another number of elements.
    pub fn new(dims: [usize; RANK], memory: SlotMemory<'a>) -> Result<Slot<'a>, ExecError> {
        let found = match &memory {
            SlotMemory::I32(to) => to.len(),
            SlotMemory::I64(to) => to.len(),
            SlotMemory::F32(to) => to.len(),
            SlotMemory::Packed(dtype, to) => {
                let shape = Shape {
                    dtype: *dtype,
                    dims,
                };
                return match shape.bytes() == to.len() as u64 {
                    true => Ok(Slot { dims, memory }),
                    false => Err(mismatch(dims, [to.len(), 1, 1, 1])),
                };
            }
            SlotMemory::Tensor(_) => return Ok(Slot { dims, memory }),
        };
        match dims.iter().product::<usize>() == found {
            true => Ok(Slot { dims, memory }),
            false => Err(mismatch(dims, [found, 1, 1, 1])),
        }
    }

    /// Returns the slot for a shorter time.
    pub fn reborrow(&mut self) -> Slot<'_> {
        let memory = match &mut self.memory {
            SlotMemory::I32(to) => SlotMemory::I32(to),
            SlotMemory::I64(to) => SlotMemory::I64(to),
            SlotMemory::F32(to) => SlotMemory::F32(to),
            SlotMemory::Packed(dtype, to) => SlotMemory::Packed(*dtype, to),
            SlotMemory::Tensor(to) => SlotMemory::Tensor(to),
        };
        Slot {
            dims: self.dims,
            memory,
        }
    }

    /// Returns the memory.
    pub const fn memory(&self) -> &SlotMemory<'a> {
        &self.memory
    }

    /// Returns the memory for writing.
    pub const fn memory_mut(&mut self) -> &mut SlotMemory<'a> {
        &mut self.memory
    }

    /// Writes an array of integers of sizes `dims`.
    ///
    /// # Errors
    /// Returns [`ExecError::Shape`] if the sizes differ from the slot's, [`ExecError::Elements`] if the slot takes real
    /// numbers, [`ExecError::Parameter`] if an integer exceeds its type's range.
    pub fn ints(
        self,
        dims: [usize; RANK],
        mut values: impl Iterator<Item = i64>,
    ) -> Result<(), ExecError> {
        match self.memory {
            SlotMemory::Tensor(out) => {
                *out = Some(Tensor::ints_of(dims, values.collect())?);
                return Ok(());
            }
            _ if dims != self.dims => return Err(mismatch(self.dims, dims)),
            SlotMemory::I32(to) => {
                for (to, v) in to.iter_mut().zip(&mut values) {
                    *to = i32::try_from(v).map_err(|_| ExecError::Parameter {
                        what: format!("{v} does not fit i32"),
                    })?;
                }
            }
            SlotMemory::I64(to) => to.iter_mut().zip(&mut values).for_each(|(to, v)| *to = v),
            SlotMemory::F32(_) | SlotMemory::Packed(..) => return Err(elements("real", "integer")),
        }
        Ok(())
    }

    /// Writes an array of real numbers of sizes `dims`.
    ///
    /// # Errors
    /// Returns [`ExecError::Shape`] if the sizes differ from the slot's, [`ExecError::Elements`] if the slot takes
    /// integers.
    pub fn reals(
        self,
        dims: [usize; RANK],
        values: impl Iterator<Item = f64>,
    ) -> Result<(), ExecError> {
        match self.memory {
            SlotMemory::Tensor(out) => {
                *out = Some(Tensor::reals_of(dims, values.collect())?);
                Ok(())
            }
            _ if dims != self.dims => Err(mismatch(self.dims, dims)),
            SlotMemory::F32(to) => {
                to.iter_mut().zip(values).for_each(|(to, v)| *to = v as f32);
                Ok(())
            }
            SlotMemory::I32(_) | SlotMemory::I64(_) | SlotMemory::Packed(..) => {
                Err(elements("integer", "real"))
            }
        }
    }

    /// Writes a matrix of real numbers. `row` writes one row.
    ///
    /// # Errors
    /// Returns the errors of [`Self::reals`], and [`ExecError::Size`] if the matrix does not fit memory.
    pub fn rows(
        self,
        [n, rows]: [usize; 2],
        mut row: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), ExecError> {
        let dims = [n, rows, 1, 1];
        let mut fill = |to: &mut [f32]| {
            let each = to.chunks_exact_mut(n.max(1));
            each.enumerate().for_each(|(i, to)| row(i, to));
        };
        match self.memory {
            SlotMemory::Tensor(out) => {
                let mut data = crate::tensor::buffer(dims)?;
                data.resize(n * rows, 0.0);
                fill(&mut data);
                *out = Some(Tensor::new(dims, Data::F32(data))?);
                Ok(())
            }
            _ if dims != self.dims => Err(mismatch(self.dims, dims)),
            SlotMemory::F32(to) => {
                fill(to);
                Ok(())
            }
            SlotMemory::I32(_) | SlotMemory::I64(_) | SlotMemory::Packed(..) => {
                Err(elements("integer", "real"))
            }
        }
    }

    /// Writes elements packed in type `dtype` with sizes `dims`, axis 0 without gaps.
    ///
    /// # Errors
    /// Returns [`ExecError::Shape`] if the sizes differ from the slot's, [`ExecError::Elements`] if the type differs,
    /// [`ExecError::Parameter`] if the number of bytes does not match.
    pub fn packed(self, dtype: DType, dims: [usize; RANK], bytes: &[u8]) -> Result<(), ExecError> {
        match self.memory {
            _ if Shape { dtype, dims }.bytes() != bytes.len() as u64 => Err(ExecError::Parameter {
                what: format!("{} bytes of {dtype} for {dims:?} elements", bytes.len()),
            }),
            SlotMemory::Packed(of, to) if of == dtype => match dims == self.dims {
                true => {
                    to.copy_from_slice(bytes);
                    Ok(())
                }
                false => Err(mismatch(self.dims, dims)),
            },
            SlotMemory::I32(_) | SlotMemory::I64(_) | SlotMemory::Tensor(_)
                if dtype.is_integer() =>
            {
                let width = dtype.block_bytes() as usize;
                self.ints(dims, bytes.chunks_exact(width).map(integer))
            }
            SlotMemory::F32(_) | SlotMemory::Tensor(_) if !dtype.is_integer() => {
                let mut all = vec![0.0; dims.iter().product()];
                crate::quant::dequantise(dtype, bytes, &mut all).map_err(|e| {
                    ExecError::Parameter {
                        what: e.to_string(),
                    }
                })?;
                self.reals(dims, all.into_iter().map(f64::from))
            }
            _ => Err(elements("of the declared type", "of another type")),
        }
    }

    /// Writes a tensor.
    ///
    /// # Errors
    /// Returns the errors of [`Self::ints`] and [`Self::reals`].
    pub fn tensor(self, tensor: Tensor) -> Result<(), ExecError> {
        if let SlotMemory::Tensor(out) = self.memory {
            *out = Some(tensor);
            return Ok(());
        }
        let dims = tensor.dims();
        match tensor.data() {
            Data::Int(values) => self.ints(dims, values.iter().copied()),
            Data::F64(values) => self.reals(dims, values.iter().copied()),
            Data::F32(values) => self.reals(dims, values.iter().map(|&v| v.into())),
        }
    }
}

/// Returns the tensor that `write` makes for a value of type `ty` and this shape. A tensor of another type is an error.
pub(crate) fn input_tensor(
    shape: &Shape,
    ty: &TensorType,
    write: impl FnOnce(&TensorType, Slot<'_>) -> Result<(), ExecError>,
) -> Result<Tensor, ExecError> {
    let mut out = None;
    let slot = Slot::new(shape.dims, SlotMemory::Tensor(&mut out))?;
    write(ty, slot)?;
    let tensor = out.ok_or_else(|| ExecError::MissingInput {
        input: format!("of type {ty}"),
    })?;
    tensor.expect("the input", shape)?;
    Ok(tensor)
}

fn integer(bytes: &[u8]) -> i64 {
    let negative = bytes.last().is_some_and(|b| b.cast_signed() < 0);
    let mut all = [if negative { 0xff } else { 0 }; 8];
    all.iter_mut().zip(bytes).for_each(|(to, b)| *to = *b);
    i64::from_le_bytes(all)
}

fn mismatch(expected: [usize; RANK], found: [usize; RANK]) -> ExecError {
    ExecError::Shape {
        what: "the input".into(),
        expected,
        found,
    }
}

fn elements(expected: &'static str, found: &'static str) -> ExecError {
    ExecError::Elements {
        what: "the input",
        expected,
        found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(to: &mut [i32]) -> Slot<'_> {
        Slot::new([3, 1, 1, 1], SlotMemory::I32(to)).expect("three")
    }

    #[test]
    fn values_are_written_where_sizes_and_kinds_agree() {
        let mut ints = [0_i32; 3];
        slot(&mut ints).ints([3, 1, 1, 1], 4..7).expect("fits");
        let e = slot(&mut ints).ints([2, 1, 1, 1], 0..2);
        assert_eq!(e.expect_err("too few").code(), "TPC0503");
        let e = slot(&mut ints).reals([3, 1, 1, 1], [0.0; 3].into_iter());
        assert_eq!(e.expect_err("reals").code(), "TPC0504");
        let e = slot(&mut ints).ints([3, 1, 1, 1], [1 << 40; 3].into_iter());
        assert_eq!(e.expect_err("large").code(), "TPC0518");
        assert_eq!(ints, [4, 5, 6]);
        let mut reals = [0.0; 4];
        let two = Slot::new([2, 2, 1, 1], SlotMemory::F32(&mut reals)).expect("four");
        two.rows([2, 2], |i, to| to.fill(i as f32)).expect("fits");
        assert_eq!(reals, [0.0, 0.0, 1.0, 1.0]);
        assert!(Slot::new([5, 1, 1, 1], SlotMemory::F32(&mut reals)).is_err());
    }

    #[test]
    fn packed_elements_are_written_as_they_are_or_decoded() {
        let dims = [2, 1, 1, 1];
        let halves = [0x00, 0x3c, 0x00, 0xc0];
        let mut bytes = [0; 4];
        let to = Slot::new(dims, SlotMemory::Packed(DType::F16, &mut bytes)).expect("two");
        to.packed(DType::F16, dims, &halves).expect("fits");
        assert_eq!(bytes, halves);
        let to = Slot::new(dims, SlotMemory::Packed(DType::F16, &mut bytes)).expect("two");
        let e = to.packed(DType::Bf16, dims, &halves);
        assert_eq!(e.expect_err("another type").code(), "TPC0504");
        let mut out = None;
        let to = Slot::new(dims, SlotMemory::Tensor(&mut out)).expect("a tensor");
        to.packed(DType::F16, dims, &halves).expect("reals");
        assert_eq!(out, Tensor::reals_of(dims, vec![1.0, -2.0]).ok());
        let mut ints = [0_i32; 2];
        let to = Slot::new(dims, SlotMemory::I32(&mut ints)).expect("two");
        let e = to.packed(DType::I16, dims, &[0; 3]);
        assert_eq!(e.expect_err("three bytes").code(), "TPC0518");
        let to = Slot::new(dims, SlotMemory::I32(&mut ints)).expect("two");
        to.packed(DType::I16, dims, &[0xfe, 0xff, 1, 1])
            .expect("fits");
        assert_eq!(ints, [-2, 257]);
        assert!(Slot::new([3, 1, 1, 1], SlotMemory::Packed(DType::F16, &mut bytes)).is_err());
    }
}
