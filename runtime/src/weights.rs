use std::borrow::Cow;
use std::collections::BTreeMap;

use tpc_ir::sharding::granule_intervals;
use tpc_ir::{DType, Interval, RANK};

use crate::error::ExecError;
use crate::quant::dequantise;
use crate::tensor::{Data, Tensor, buffer, count};

/// A whole tensor of the model, packed in its GGUF type.
#[derive(Clone, Copy, Debug)]
pub struct WeightData<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes in ggml's order; missing axes are 1.
    pub ne: [u64; RANK],
    /// Blocks of all rows, axis 0 fastest.
    pub bytes: &'a [u8],
}

/// A source of weights, such as a mapped model file.
pub trait WeightSource {
    /// Returns the tensor of this name.
    ///
    /// # Errors
    /// Returns [`ExecError::MissingWeight`] if the source does not have the tensor.
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError>;

    /// Tells the source that a tensor's bytes have been copied. A source that can read the bytes again may drop them
    /// from memory.
    fn release(&self, _bytes: &[u8]) {}
}

/// Weights in memory, for tests.
#[derive(Clone, Debug, Default)]
pub struct MemoryWeights(BTreeMap<String, (DType, [u64; RANK], Vec<u8>)>);

impl MemoryWeights {
    /// Returns an empty source.
    pub fn new() -> MemoryWeights {
        MemoryWeights::default()
    }

    /// Adds or replaces a tensor.
    pub fn insert(
        &mut self,
        tensor: impl Into<String>,
        dtype: DType,
        ne: [u64; RANK],
        bytes: Vec<u8>,
    ) {
        self.0.insert(tensor.into(), (dtype, ne, bytes));
    }

    /// Adds or replaces an f32 tensor.
    pub fn insert_f32(&mut self, tensor: impl Into<String>, ne: [u64; RANK], values: &[f32]) {
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect();
        self.insert(tensor, DType::F32, ne, bytes);
    }
}

impl WeightSource for MemoryWeights {
    fn weight(&self, tensor: &str) -> Result<WeightData<'_>, ExecError> {
        let (dtype, ne, bytes) = self.0.get(tensor).ok_or_else(|| ExecError::MissingWeight {
            tensor: tensor.to_owned(),
        })?;
        Ok(WeightData {
            dtype: *dtype,
            ne: *ne,
            bytes,
        })
    }
}

/// A device's part of a tensor, still packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedWeight<'a> {
    /// Element type.
    pub dtype: DType,
    /// Sizes of the part.
    pub ne: [usize; RANK],
    /// First index of the part's rows along axis 0 of the tensor; 0 for rows of several runs.
    pub start: u64,
    /// All blocks that the part touches, axis 0 fastest.
    pub bytes: Cow<'a, [u8]>,
}

/// The source tensor of a part, for error messages.
struct Cut<'a> {
    tensor: &'a str,
    data: WeightData<'a>,
}

impl Cut<'_> {
    fn mismatch(&self, expected: String, found: String) -> ExecError {
        ExecError::WeightMismatch {
            tensor: self.tensor.to_owned(),
            expected,
            found,
        }
    }

    fn too_large(&self) -> ExecError {
        ExecError::Size {
            what: format!("of tensor {:?}, {:?}", self.tensor, self.data.ne),
        }
    }

    /// Returns the bytes of a row. Checks for whole blocks and the tensor's length.
    fn row_bytes(&self) -> Result<u64, ExecError> {
        let WeightData { dtype, ne, bytes } = &self.data;
        let row_bytes = dtype.bytes(ne[0]).ok_or_else(|| {
            self.mismatch(
                format!("rows of whole blocks of {dtype}"),
                ne[0].to_string(),
            )
        })?;
        let total = ne[1..].iter().try_fold(row_bytes, |a, &d| a.checked_mul(d));
        if total == Some(bytes.len() as u64) {
            return Ok(row_bytes);
        }
        Err(self.mismatch(
            format!("the bytes of {dtype}{ne:?}"),
            format!("{} bytes", bytes.len()),
        ))
    }

    fn check(&self, axis: usize, interval: Interval, granule: u64) -> Result<(), ExecError> {
        let Interval { start, len } = interval;
        let (tensor, dtype) = (self.tensor.to_owned(), self.data.dtype);
        let size = self.data.ne[axis];
        if start.checked_add(len).is_none_or(|end| end > size) {
            return Err(ExecError::PartRange {
                tensor,
                axis,
                start,
                len,
                size,
            });
        }
        if axis == 0 && !(start.is_multiple_of(granule) && len.is_multiple_of(granule)) {
            return Err(ExecError::CutBlock {
                tensor,
                dtype,
                start,
                len,
            });
        }
        Ok(())
    }

    /// Checks the intervals of every axis. Returns the intervals with the part's sizes.
    fn intervals(
        &self,
        parts: &[Vec<Interval>],
    ) -> Result<([Vec<Interval>; RANK], [usize; RANK]), ExecError> {
        if parts.len() > RANK {
            return Err(ExecError::Parameter {
                what: format!(
                    "tensor {:?}: parts for {} axes, there are {RANK}",
                    self.tensor,
                    parts.len()
                ),
            });
        }
        let mut out: [Vec<Interval>; RANK] = Default::default();
        let mut ne = [0_usize; RANK];
        for (axis, (out, &size)) in out.iter_mut().zip(&self.data.ne).enumerate() {
            let whole = [Interval {
                start: 0,
                len: size,
            }];
            let given = parts.get(axis).map_or(whole.as_slice(), Vec::as_slice);
            // A part with a single run per row may begin and end inside blocks.
            let granule = match given.len() {
                1 => self.data.dtype.granule(),
                _ => self.data.dtype.block_len(),
            };
            for &interval in given {
                self.check(axis, interval, granule)?;
            }
            let len = given.iter().try_fold(0_u64, |a, r| a.checked_add(r.len));
            ne[axis] = len
                .and_then(|n| usize::try_from(n).ok())
                .ok_or_else(|| self.too_large())?;
            *out = given.to_vec();
        }
        Ok((out, ne))
    }

    fn blocks(
        &self,
        row_bytes: u64,
        intervals: &[Vec<Interval>; RANK],
        ne: [usize; RANK],
    ) -> Result<Vec<u8>, ExecError> {
        let WeightData {
            dtype,
            ne: all,
            bytes,
        } = &self.data;
        let (len, width) = (dtype.block_len(), dtype.block_bytes());
        let touched: Vec<Interval> = granule_intervals(&intervals[0], len);
        let local_row = touched.iter().map(|r| r.len / len * width).sum::<u64>();
        let local_row = usize::try_from(local_row).map_err(|_| self.too_large())?;
        let mut out: Vec<u8> = buffer([local_row, ne[1], ne[2], ne[3]])?;
        let indices = |axis: usize| {
            intervals[axis]
                .iter()
                .flat_map(|r| r.start..r.start + r.len)
        };
        for i3 in indices(3) {
            for i2 in indices(2) {
                for i1 in indices(1) {
                    let row = ((i3 * all[2] + i2) * all[1] + i1) * row_bytes;
                    for r in &touched {
                        let at = (row + r.start / len * width) as usize;
                        let end = at + (r.len / len * width) as usize;
                        out.extend_from_slice(&bytes[at..end]);
                    }
                }
            }
        }
        Ok(out)
    }
}

/// Cuts the part `parts` out of a tensor. `parts` lists, per axis, the intervals of indices to keep, in sequence;
/// `None` and omitted axes keep all. A single interval along axis 0 may begin and end inside blocks, at multiples of
/// the type's [granule](DType::granule). The part then holds all blocks that the interval touches, and
/// [`PackedWeight::skipped`] returns the number of elements before the interval.
///
/// # Errors
/// Returns [`ExecError::CutBlock`] for any other cut inside a block along axis 0, [`ExecError::PartRange`] if an
/// interval exceeds the axis, [`ExecError::WeightMismatch`] if the bytes do not match the tensor's sizes.
pub fn pack<'a>(
    tensor: &str,
    data: WeightData<'a>,
    parts: Option<&[Vec<Interval>]>,
) -> Result<PackedWeight<'a>, ExecError> {
    let dtype = data.dtype;
    let cut = Cut { tensor, data };
    let row_bytes = cut.row_bytes()?;
    let Some(parts) = parts else {
        let mut ne = [0_usize; RANK];
        for (out, &n) in ne.iter_mut().zip(&data.ne) {
            *out = usize::try_from(n).map_err(|_| cut.too_large())?;
        }
        let bytes = Cow::Borrowed(data.bytes);
        return Ok(PackedWeight {
            dtype,
            ne,
            start: 0,
            bytes,
        });
    };
    let (intervals, ne) = cut.intervals(parts)?;
    let start = match intervals[0].as_slice() {
        [only] => only.start,
        _ => 0,
    };
    let bytes = Cow::Owned(cut.blocks(row_bytes, &intervals, ne)?);
    Ok(PackedWeight {
        dtype,
        ne,
        start,
        bytes,
    })
}

impl PackedWeight<'_> {
    /// Returns the number of elements before the part in a row's first block.
    pub const fn skipped(&self) -> usize {
        (self.start % self.dtype.block_len()) as usize
    }

    /// Returns the number of elements in a row's blocks, including elements outside the part.
    pub const fn row_len(&self) -> usize {
        let block = self.dtype.block_len() as usize;
        (self.skipped() + self.ne[0]).next_multiple_of(block)
    }

    /// Returns the elements: f64 for f64, f32 for other real types, integers for integer types.
    ///
    /// # Errors
    /// Returns [`ExecError::Quant`] if the type has no decoder.
    pub fn unpack(&self) -> Result<Tensor, ExecError> {
        let [k, rows @ ..] = self.ne;
        let all = [self.row_len(), rows[0], rows[1], rows[2]];
        let n = count(all)?;
        let data = match self.dtype {
            DType::I8 => Data::Int(plain(&self.bytes, |[b]: [u8; 1]| {
                i64::from(i8::from_le_bytes([b]))
            })),
            DType::I16 => Data::Int(plain(&self.bytes, |b| i64::from(i16::from_le_bytes(b)))),
            DType::I32 => Data::Int(plain(&self.bytes, |b| i64::from(i32::from_le_bytes(b)))),
            DType::I64 => Data::Int(plain(&self.bytes, i64::from_le_bytes)),
            DType::F64 => Data::F64(plain(&self.bytes, f64::from_le_bytes)),
            dtype => {
                let mut out = buffer(all)?;
                out.resize(n, 0.0_f32);
                dequantise(dtype, &self.bytes, &mut out)?;
                Data::F32(out)
            }
        };
        let touched = Tensor::new(all, data)?;
        match all[0] == k {
            true => Ok(touched),
            false => touched.slice(0, self.skipped(), k),
        }
    }
}

fn plain<const N: usize, T>(bytes: &[u8], decode: impl Fn([u8; N]) -> T) -> Vec<T> {
    let (chunks, _) = bytes.as_chunks::<N>();
    chunks.iter().map(|&c| decode(c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(start: u64, len: u64) -> Interval {
        Interval { start, len }
    }

    /// Block b of row r of matrix m holds the bytes 100·m + 10·r + b; sizes [64, 3, 2].
    fn q8() -> Vec<u8> {
        let mut out = Vec::new();
        for m in 0..2 {
            for r in 0..3 {
                for b in 0..2 {
                    out.extend([100 * m + 10 * r + b; 34]);
                }
            }
        }
        out
    }

    fn packed(parts: &[Vec<Interval>]) -> Result<(Vec<u8>, [usize; RANK]), ExecError> {
        let bytes = q8();
        let data = WeightData {
            dtype: DType::Q8_0,
            ne: [64, 3, 2, 1],
            bytes: &bytes,
        };
        let p = pack("w", data, Some(parts))?;
        Ok((p.bytes.iter().copied().step_by(34).collect(), p.ne))
    }

    #[test]
    fn parts_select_packed_blocks() {
        let part = packed(&[
            vec![run(32, 32)],
            vec![run(0, 1), run(2, 1)],
            vec![run(1, 1)],
        ]);
        assert_eq!(part.expect("in range"), (vec![101, 121], [32, 2, 1, 1]));
        let rows = packed(&[vec![run(0, 64)], vec![run(1, 2)]]).expect("axes 2 and 3 whole");
        assert_eq!(
            rows,
            (vec![10, 11, 20, 21, 110, 111, 120, 121], [64, 2, 2, 1])
        );
        let none = packed(&[vec![run(0, 64)], vec![]]).expect("an empty part is a part");
        assert_eq!(none, (vec![], [64, 0, 2, 1]));
    }

    #[test]
    fn parts_keep_whole_blocks_within_the_tensor() {
        let code = |parts: &[Vec<Interval>]| packed(parts).expect_err("bad part").code();
        assert_eq!(code(&[vec![run(0, 48)]]), "TPC0509");
        assert_eq!(code(&[vec![run(16, 32)]]), "TPC0509");
        assert_eq!(code(&[vec![run(0, 64)], vec![run(2, 2)]]), "TPC0510");
        assert_eq!(code(&[vec![run(0, 64)], vec![run(u64::MAX, 2)]]), "TPC0510");
        assert_eq!(code(&[vec![], vec![], vec![], vec![], vec![]]), "TPC0518");
    }

    #[test]
    fn a_packed_part_decodes_to_the_same_elements() {
        let mut bytes = Vec::new();
        let values: Vec<f32> = (0..128).map(|i| i as f32 / 7.0 - 9.0).collect();
        crate::quant::quantise(DType::Q4_1, &values, &mut bytes).expect("whole blocks");
        let data = WeightData {
            dtype: DType::Q4_1,
            ne: [64, 2, 1, 1],
            bytes: &bytes,
        };
        let whole = pack("w", data, None).and_then(|p| p.unpack()).expect("ok");
        let parts = [vec![run(32, 32)], vec![run(0, 2)]];
        let part = pack("w", data, Some(&parts)).and_then(|p| p.unpack());
        assert_eq!(part.expect("ok"), whole.slice(0, 32, 32).expect("ok"));
    }

    #[test]
    fn a_part_of_blocks_decodes_to_the_same_elements() {
        let values: Vec<f32> = (0..2 * 768).map(|i| (i % 97) as f32 / 7.0 - 6.0).collect();
        for dtype in [DType::Q4K, DType::Q6K, DType::Iq4Xs, DType::Q1_0] {
            let mut bytes = Vec::new();
            crate::quant::quantise(dtype, &values, &mut bytes).expect("whole blocks");
            let ne = [768, 2, 1, 1];
            let bytes = &bytes;
            let data = WeightData { dtype, ne, bytes };
            let whole = pack("w", data, None).and_then(|p| p.unpack()).expect("ok");
            for (start, len) in [(0, 96), (192, 192), (352, 32), (544, 224)] {
                let part = pack("w", data, Some(&[vec![run(start, len)]])).expect("granules");
                assert_eq!((part.start, part.ne[0] as u64), (start, len));
                let found = part.unpack().expect("ok");
                let expect = whole.slice(0, start as usize, len as usize);
                assert_eq!(found, expect.expect("ok"), "{dtype} {start}:{len}");
            }
            for parts in [vec![run(16, 32)], vec![run(0, 32), run(256, 256)]] {
                let refused = pack("w", data, Some(&[parts])).expect_err("cut");
                assert_eq!(refused.code(), "TPC0509");
            }
        }
    }

    #[test]
    fn integers_keep_every_bit() {
        let bytes: Vec<u8> = [16_777_217_i32, -3]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect();
        let data = WeightData {
            dtype: DType::I32,
            ne: [2, 1, 1, 1],
            bytes: &bytes,
        };
        let t = pack("ids", data, None).and_then(|p| p.unpack());
        assert_eq!(t.expect("ok").ints(), Ok([16_777_217, -3].as_slice()));
    }

    #[test]
    fn bytes_must_be_those_of_the_sizes() {
        let data = WeightData {
            dtype: DType::F32,
            ne: [2, 2, 1, 1],
            bytes: &[0; 12],
        };
        assert_eq!(pack("w", data, None).expect_err("short").code(), "TPC0508");
        let data = WeightData {
            dtype: DType::Q8_0,
            ne: [48, 1, 1, 1],
            bytes: &[0; 51],
        };
        assert_eq!(pack("w", data, None).expect_err("cut").code(), "TPC0508");
    }
}
