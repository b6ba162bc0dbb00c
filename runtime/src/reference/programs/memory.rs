//! The bytes of an arena with the numbers that they represent.
//!
//! The reference computes in f64, but an f32 has four bytes. An arena therefore records the f64 before rounding to each
//! f32. A read returns this f64 while the bytes are unchanged, otherwise the value of the bytes.

use std::collections::HashMap;

use tpc_ir::program::BatchLayout;
use tpc_ir::{DType, RANK};

use crate::error::ExecError;
use crate::quant::{dequantise, quantise};
use crate::tensor::{Data, Tensor, buffer};

#[derive(Clone, Debug, Default)]
pub(super) struct ArenaBytes {
    bytes: Vec<u8>,
    /// Number before rounding to f32, per four bytes.
    wide: Vec<f64>,
    /// Written bytes and their numbers for types other than f32, by address.
    exact: HashMap<usize, Exact>,
}

/// A block to write: address, bytes, and exact numbers if they differ from the decoded bytes.
type Write = (usize, Vec<u8>, Option<Box<[f64]>>);

#[derive(Clone, Debug)]
struct Exact {
    bytes: Box<[u8]>,
    numbers: Box<[f64]>,
}

/// Content of unwritten memory: implausible as floats, out of range as indices.
const POISON: u8 = 0xfb;

impl ArenaBytes {
    pub(super) fn poisoned(bytes: usize) -> Result<ArenaBytes, ExecError> {
        let mut out = ArenaBytes::default();
        let large = |_| ExecError::Size {
            what: format!("{bytes} bytes of an arena"),
        };
        out.bytes.try_reserve_exact(bytes).map_err(large)?;
        out.wide.try_reserve_exact(bytes / 4).map_err(large)?;
        out.bytes.resize(bytes, POISON);
        out.wide.resize(bytes / 4, 0.0);
        Ok(out)
    }

    pub(super) fn poison(&mut self) {
        self.bytes.fill(POISON);
        self.exact.clear();
    }

    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
        self.exact.clear();
    }

    pub(super) fn range(&mut self, at: usize, len: usize) -> Result<&mut [u8], ExecError> {
        let size = self.bytes.len();
        let end = at.checked_add(len);
        end.and_then(|end| self.bytes.get_mut(at..end))
            .ok_or_else(|| beyond(at, size))
    }

    pub(super) fn read(
        &self,
        base: u64,
        at: &BatchLayout,
        dtype: DType,
    ) -> Result<Tensor, ExecError> {
        let dims = at.dims.map(|d| d as usize);
        let mut reals: Vec<f64> = Vec::new();
        let mut ints: Vec<i64> = Vec::new();
        if dtype.is_integer() {
            ints = buffer(dims)?;
        } else {
            reals = buffer(dims)?;
        }
        let (len, size) = (dtype.block_len() as usize, dtype.block_bytes() as usize);
        let mut block = vec![0.0_f32; len];
        for_each_block(base, at, dtype, |address| {
            let end = address.checked_add(size);
            let bytes = end.and_then(|end| self.bytes.get(address..end));
            let bytes = bytes.ok_or_else(|| beyond(address, self.bytes.len()))?;
            if dtype.is_integer() {
                ints.push(integer(dtype, bytes));
                return Ok(());
            }
            if dtype == DType::F32 {
                reals.push(self.number(address, bytes));
                return Ok(());
            }
            match self.exact.get(&address).filter(|e| *e.bytes == *bytes) {
                Some(exact) => reals.extend_from_slice(&exact.numbers),
                None if dtype == DType::F64 => reals.push(f64::from_le_bytes(eight(bytes))),
                None => {
                    dequantise(dtype, bytes, &mut block)?;
                    reals.extend(block.iter().map(|&x| f64::from(x)));
                }
            }
            Ok(())
        })?;
        Tensor::new(
            dims,
            match dtype.is_integer() {
                true => Data::Int(ints),
                false => Data::F64(reals),
            },
        )
    }

    /// Writes a tensor. Skips blocks that already hold its numbers.
    pub(super) fn write(
        &mut self,
        base: u64,
        at: &BatchLayout,
        dtype: DType,
        tensor: &Tensor,
    ) -> Result<(), ExecError> {
        if dtype == DType::F32 {
            return self.write_f32(base, at, &tensor.reals()?);
        }
        let (len, size) = (dtype.block_len() as usize, dtype.block_bytes() as usize);
        let mut next = 0;
        let mut encoded = Vec::with_capacity(size);
        let mut decoded = vec![0.0_f32; len];
        let reals = match dtype.is_integer() {
            true => None,
            false => Some(tensor.reals()?),
        };
        let mut writes: Vec<Write> = Vec::new();
        for_each_block(base, at, dtype, |address| {
            encoded.clear();
            let from = next;
            next += len;
            let Some(reals) = &reals else {
                encode_integer(dtype, tensor.ints()?[from], &mut encoded)?;
                writes.push((address, encoded.clone(), None));
                return Ok(());
            };
            let numbers = &reals[from..next];
            if dtype == DType::F64 {
                encoded.extend_from_slice(&numbers[0].to_le_bytes());
                writes.push((address, encoded.clone(), None));
                return Ok(());
            }
            if dtype.is_quantised() && self.holds(address, dtype, numbers) {
                return Ok(());
            }
            let narrow: Vec<f32> = numbers.iter().map(|&x| x as f32).collect();
            quantise(dtype, &narrow, &mut encoded)?;
            dequantise(dtype, &encoded, &mut decoded)?;
            let same = |(a, b): (&f32, &f64)| f64::from(*a).to_bits() == b.to_bits();
            let exact = decoded.iter().zip(numbers).all(same);
            let numbers = (!exact).then(|| Box::from(numbers));
            writes.push((address, encoded.clone(), numbers));
            Ok(())
        })?;
        for (address, bytes, numbers) in writes {
            self.range(address, size)?.copy_from_slice(&bytes);
            match numbers {
                Some(numbers) => {
                    let bytes = bytes.into_boxed_slice();
                    self.exact.insert(address, Exact { bytes, numbers });
                }
                None => {
                    self.exact.remove(&address);
                }
            }
        }
        Ok(())
    }

    fn number(&self, address: usize, bytes: &[u8]) -> f64 {
        let mut four = [0; 4];
        four.copy_from_slice(bytes);
        let stored = f32::from_le_bytes(four);
        let wide = self
            .wide
            .get(address / 4)
            .filter(|_| address.is_multiple_of(4));
        match wide {
            Some(&wide) if (wide as f32).to_bits() == stored.to_bits() => wide,
            _ => f64::from(stored),
        }
    }

    fn write_f32(&mut self, base: u64, at: &BatchLayout, numbers: &[f64]) -> Result<(), ExecError> {
        let mut next = numbers.iter();
        for_each_block(base, at, DType::F32, |address| {
            let number = next.next().copied().unwrap_or_default();
            let to = self.range(address, 4)?;
            to.copy_from_slice(&(number as f32).to_le_bytes());
            if address.is_multiple_of(4)
                && let Some(wide) = self.wide.get_mut(address / 4)
            {
                *wide = number;
            }
            Ok(())
        })
    }

    fn holds(&self, address: usize, dtype: DType, numbers: &[f64]) -> bool {
        let end = address + dtype.block_bytes() as usize;
        let Some(bytes) = self.bytes.get(address..end) else {
            return false;
        };
        if let Some(exact) = self.exact.get(&address).filter(|e| *e.bytes == *bytes) {
            return *exact.numbers == *numbers;
        }
        let mut block = vec![0.0_f32; numbers.len()];
        dequantise(dtype, bytes, &mut block).is_ok()
            && block.iter().zip(numbers).all(|(a, b)| f64::from(*a) == *b)
    }
}

fn beyond(at: usize, size: usize) -> ExecError {
    ExecError::Malformed {
        what: format!("byte {at} of an arena of {size}"),
    }
}

fn for_each_block(
    base: u64,
    at: &BatchLayout,
    dtype: DType,
    mut f: impl FnMut(usize) -> Result<(), ExecError>,
) -> Result<(), ExecError> {
    let mut counts = at.dims;
    counts[0] = counts[0].div_ceil(dtype.block_len());
    if counts.contains(&0) {
        return Ok(());
    }
    let mut index = [0_u64; RANK];
    loop {
        let steps = index.iter().zip(&at.strides);
        let far = steps.fold(base.saturating_add(at.offset), |a, (i, s)| {
            a.saturating_add(i.saturating_mul(*s))
        });
        f(usize::try_from(far).unwrap_or(usize::MAX))?;
        let mut axis = 0;
        loop {
            index[axis] += 1;
            if index[axis] < counts[axis] {
                break;
            }
            index[axis] = 0;
            axis += 1;
            if axis == RANK {
                return Ok(());
            }
        }
    }
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[..8]);
    out
}

fn integer(dtype: DType, bytes: &[u8]) -> i64 {
    let mut out = match bytes.last() {
        Some(b) if b & 0x80 != 0 => [0xff; 8],
        _ => [0; 8],
    };
    let n = dtype.block_bytes() as usize;
    out[..n].copy_from_slice(&bytes[..n]);
    i64::from_le_bytes(out)
}

fn encode_integer(dtype: DType, value: i64, out: &mut Vec<u8>) -> Result<(), ExecError> {
    let n = dtype.block_bytes() as usize;
    let bytes = value.to_le_bytes();
    if integer(dtype, &bytes[..n]) != value {
        return Err(ExecError::Parameter {
            what: format!("{value} does not fit {dtype}"),
        });
    }
    out.extend_from_slice(&bytes[..n]);
    Ok(())
}
