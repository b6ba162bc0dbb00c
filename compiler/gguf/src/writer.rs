//! Writes GGUF files.

use std::io::{self, Write};

use tpc_ir::DType;

use super::cursor::Endianness;
use super::error::{GgufError, GgufErrorKind};
use super::header::{Header, TensorInfo};
use super::parser::{self, DEFAULT_ALIGNMENT};
use super::value::{MetaArray, MetaValue};

/// The format version to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 2, for old programs. The specification makes it little-endian.
    V2,
    /// Version 3, the current one.
    V3,
}

/// A GGUF file to be written: metadata, then tensors, in order and at increasing offsets.
///
/// Equal calls give equal bytes. The defaults are version 3, little-endian, and an alignment of 32 bytes (or
/// `general.alignment`). [`super::parse`] checks the header before a byte is written.
#[derive(Clone, Debug)]
pub struct GgufWriter {
    name: String,
    version: Version,
    endianness: Endianness,
    pairs: Vec<(String, MetaValue)>,
    tensors: Vec<(String, DType, Vec<u64>)>,
}

impl GgufWriter {
    /// Makes an empty file; `name` is for messages.
    pub fn new(name: &str) -> GgufWriter {
        GgufWriter {
            name: name.to_owned(),
            version: Version::V3,
            endianness: Endianness::Little,
            pairs: Vec::new(),
            tensors: Vec::new(),
        }
    }

    /// Sets the format version.
    pub fn version(&mut self, version: Version) -> &mut GgufWriter {
        self.version = version;
        self
    }

    /// Sets the header's byte order. Tensor data are written as given.
    pub fn endianness(&mut self, endianness: Endianness) -> &mut GgufWriter {
        self.endianness = endianness;
        self
    }

    /// Appends a key/value pair.
    pub fn meta(&mut self, key: &str, value: impl Into<MetaValue>) -> &mut GgufWriter {
        self.pairs.push((key.to_owned(), value.into()));
        self
    }

    /// Appends a tensor of `ne` elements along its axes, in ggml order.
    pub fn tensor(&mut self, name: &str, dtype: DType, ne: &[u64]) -> &mut GgufWriter {
        self.tensors.push((name.to_owned(), dtype, ne.to_vec()));
        self
    }

    /// Returns the header to be written, with the tensors' offsets.
    ///
    /// # Errors
    ///
    /// Returns the header's first defect, as [`super::parse`] does.
    pub fn header(&self) -> Result<Header, GgufError> {
        self.encode().map(|(_, header)| header)
    }

    /// Writes a bare header, padded to the data offset.
    ///
    /// # Errors
    ///
    /// Returns an error if the header has a defect or a write fails.
    pub fn write_header(&self, mut out: impl Write) -> Result<Header, GgufError> {
        let (bytes, header) = self.encode()?;
        out.write_all(&bytes).map_err(|e| self.io_error(e))?;
        Ok(header)
    }

    /// Writes the whole file. It calls `data` with each tensor's index, in order, to write its bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the header has a defect, a write fails, or `data` writes a number of bytes other than the
    /// tensor's.
    pub fn write(
        &self,
        mut out: impl Write,
        mut data: impl FnMut(usize, &TensorInfo, &mut dyn Write) -> io::Result<()>,
    ) -> Result<Header, GgufError> {
        let header = self.write_header(&mut out)?;
        for (i, tensor) in header.tensors().iter().enumerate() {
            let mut counter = ByteCounter {
                out: &mut out,
                written: 0,
            };
            data(i, tensor, &mut counter).map_err(|e| self.io_error(e))?;
            let found = counter.written;
            if found != tensor.bytes {
                let kind = GgufErrorKind::DataLength {
                    expected: tensor.bytes,
                    found,
                };
                return Err(GgufError::new(&self.name, kind)
                    .at(tensor.offset)
                    .in_tensor(&tensor.name));
            }
            let padding = found.next_multiple_of(header.alignment) - found;
            io::copy(&mut io::Read::take(io::repeat(0), padding), &mut out)
                .map_err(|e| self.io_error(e))?;
        }
        Ok(header)
    }

    fn io_error(&self, source: io::Error) -> GgufError {
        GgufError::new(
            &self.name,
            GgufErrorKind::Io {
                action: "write the file",
                source,
            },
        )
    }

    fn alignment(&self) -> u64 {
        let given = self
            .pairs
            .iter()
            .find(|(key, _)| key == "general.alignment");
        match given {
            // The parser refuses other values when the header is read back.
            Some((_, MetaValue::U32(a))) if a.is_power_of_two() => u64::from(*a),
            _ => DEFAULT_ALIGNMENT,
        }
    }

    fn encode(&self) -> Result<(Vec<u8>, Header), GgufError> {
        let mut e = Encoder {
            bytes: b"GGUF".to_vec(),
            endianness: self.endianness,
        };
        e.u32(match self.version {
            Version::V2 => 2,
            Version::V3 => 3,
        });
        e.u64(self.tensors.len() as u64);
        e.u64(self.pairs.len() as u64);
        for (key, value) in &self.pairs {
            e.string(key);
            e.u32(value.value_type().gguf_id());
            e.value(value);
        }
        let alignment = self.alignment();
        let mut offset = 0u64;
        for (name, dtype, ne) in &self.tensors {
            e.string(name);
            e.u32(ne.len().try_into().unwrap_or(u32::MAX));
            for &n in ne {
                e.u64(n);
            }
            e.u32(dtype.gguf_id());
            e.u64(offset);
            // The parser refuses partial blocks and excessive sizes when the header is read back.
            let bytes = dtype.tensor_bytes(ne).unwrap_or(0);
            let next = offset
                .checked_add(bytes)
                .and_then(|end| end.checked_next_multiple_of(alignment));
            offset = next.unwrap_or(u64::MAX - (alignment - 1));
        }
        let mut bytes = e.bytes;
        let padded = (bytes.len() as u64).next_multiple_of(alignment);
        let header = parser::parse(&bytes, bytes.len() as u64, &self.name)?;
        bytes.resize(
            usize::try_from(padded).expect("invariant: the padding is at most 2^31 bytes"),
            0,
        );
        Ok((bytes, header))
    }
}

struct ByteCounter<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for ByteCounter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

struct Encoder {
    bytes: Vec<u8>,
    endianness: Endianness,
}

macro_rules! put {
    ($encoder:expr, $number:expr) => {
        match $encoder.endianness {
            Endianness::Little => $encoder.bytes.extend_from_slice(&$number.to_le_bytes()),
            Endianness::Big => $encoder.bytes.extend_from_slice(&$number.to_be_bytes()),
        }
    };
}

macro_rules! put_all {
    ($encoder:expr, $numbers:expr) => {
        for number in $numbers {
            put!($encoder, number);
        }
    };
}

impl Encoder {
    fn u32(&mut self, x: u32) {
        put!(self, x);
    }

    fn u64(&mut self, x: u64) {
        put!(self, x);
    }

    fn string(&mut self, s: &str) {
        self.u64(s.len() as u64);
        self.bytes.extend_from_slice(s.as_bytes());
    }

    fn value(&mut self, value: &MetaValue) {
        match value {
            MetaValue::U8(x) => put!(self, x),
            MetaValue::I8(x) => put!(self, x),
            MetaValue::U16(x) => put!(self, x),
            MetaValue::I16(x) => put!(self, x),
            MetaValue::U32(x) => put!(self, x),
            MetaValue::I32(x) => put!(self, x),
            MetaValue::U64(x) => put!(self, x),
            MetaValue::I64(x) => put!(self, x),
            MetaValue::F32(x) => put!(self, x),
            MetaValue::F64(x) => put!(self, x),
            MetaValue::Bool(x) => self.bytes.push((*x).into()),
            MetaValue::Str(s) => self.string(s),
            MetaValue::Array(array) => self.array(array),
        }
    }

    fn array(&mut self, array: &MetaArray) {
        self.u32(array.element_type().gguf_id());
        self.u64(array.len() as u64);
        match array {
            MetaArray::U8(v) => self.bytes.extend_from_slice(v),
            MetaArray::I8(v) => put_all!(self, v),
            MetaArray::U16(v) => put_all!(self, v),
            MetaArray::I16(v) => put_all!(self, v),
            MetaArray::U32(v) => put_all!(self, v),
            MetaArray::I32(v) => put_all!(self, v),
            MetaArray::U64(v) => put_all!(self, v),
            MetaArray::I64(v) => put_all!(self, v),
            MetaArray::F32(v) => put_all!(self, v),
            MetaArray::F64(v) => put_all!(self, v),
            MetaArray::Bool(v) => self.bytes.extend(v.iter().map(|&b| u8::from(b))),
            MetaArray::Str(list) => list.iter().for_each(|s| self.string(s)),
            MetaArray::Array(arrays) => arrays.iter().for_each(|a| self.array(a)),
        }
    }
}
