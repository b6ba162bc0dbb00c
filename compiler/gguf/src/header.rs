//! The checked header of a GGUF file.

use tpc_ir::DType;

use super::cursor::Endianness;
use super::error::{GgufError, GgufErrorKind};
use super::metadata::Metadata;
use super::names::NameIndex;

/// One tensor of a model.
///
/// Checked: `ne` has `n_dims` non-zero entries followed by ones, and `ne[0]` is a multiple of `dtype`'s block length.
/// Both `bytes` and the product of `ne` are below 2^63, and `offset + bytes` does not overflow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorInfo {
    /// The name, such as `blk.0.attn_q.weight`; unique in a model.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// Elements along each axis, in ggml order: axis 0 is contiguous. Absent axes are 1.
    pub ne: [u64; 4],
    /// Number of axes in the file, 1 to 4.
    pub n_dims: usize,
    /// The shard with the data, from 0; 0 without a split.
    pub shard: usize,
    /// Bytes from the start of that shard's file to the data.
    pub offset: u64,
    /// Bytes of data, without padding.
    pub bytes: u64,
}

impl TensorInfo {
    /// Returns the declared axis sizes.
    pub fn shape(&self) -> &[u64] {
        &self.ne[..self.n_dims]
    }

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.ne.iter().product()
    }

    /// Returns the end of the data, in bytes from the start of the shard's file.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }
}

/// The header of one GGUF file, or of all shards of a split model.
///
/// For a split model, scalar fields and metadata come from shard 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Header {
    /// Format version, 2 or 3.
    pub version: u32,
    /// Byte order of the header and of the tensor data.
    pub endianness: Endianness,
    /// The divisor of tensor offsets, in bytes: a power of two, at least 8.
    pub alignment: u64,
    /// Bytes from the file's start to the tensor data section.
    pub data_offset: u64,
    pub(super) metadata: Metadata,
    pub(super) tensors: Vec<TensorInfo>,
    pub(super) by_name: NameIndex,
}

impl Header {
    /// Returns the key/value pairs.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Returns the tensors in file order; shard by shard for a split model.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Returns the tensor `name`.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.by_name
            .find(&self.tensors, |t| &t.name, name)
            .map(|i| &self.tensors[i])
    }

    /// Returns the bytes of tensor data, without padding.
    pub fn data_bytes(&self) -> u128 {
        self.tensors.iter().map(|t| u128::from(t.bytes)).sum()
    }

    /// Joins the headers of shards, in order.
    ///
    /// # Errors
    ///
    /// Returns an error if a tensor name repeats.
    pub(super) fn join(
        first: Header,
        rest: impl IntoIterator<Item = Header>,
    ) -> Result<Header, GgufError> {
        let mut joined = first;
        let mut files = vec![joined.metadata.file().to_owned()];
        for header in rest {
            let shard = files.len();
            joined.tensors.extend(
                header
                    .tensors
                    .into_iter()
                    .map(|t| TensorInfo { shard, ..t }),
            );
            files.push(header.metadata.file().to_owned());
        }
        joined.by_name = NameIndex::build(&joined.tensors, |t| &t.name).map_err(|duplicate| {
            let first = format!("in shard {}", joined.tensors[duplicate.first].shard + 1);
            let second = &joined.tensors[duplicate.second];
            GgufError::new(
                &files[second.shard],
                GgufErrorKind::DuplicateTensor { first },
            )
            .in_tensor(&second.name)
        })?;
        Ok(joined)
    }
}
