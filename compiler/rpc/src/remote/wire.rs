//! Tensors of a captured graph in messages.

use tpc_ggml::capture::Record;
use tpc_ggml::op::OpKind;

use super::RemoteError;
use crate::protocol::{SOURCES, TENSOR_BYTES};
use crate::version::Version;

/// `GGML_TENSOR_FLAG_COMPUTE`.
const COMPUTE: i32 = 16;
const PARAMS: usize = 16;
/// The length of a name in bytes, with its final zero.
const NAME: usize = 64;

/// A tensor with its place in a server's memory. The id of record `i` is `i + 1`.
#[derive(Clone, Debug)]
pub(super) struct WireTensor<'a> {
    pub(super) record: &'a Record,
    pub(super) position: usize,
    pub(super) buffer: u64,
    /// The address of the owner's memory.
    pub(super) base: u64,
}

/// Returns the id of a record.
pub(super) const fn id(position: usize) -> u64 {
    position as u64 + 1
}

impl WireTensor<'_> {
    /// Returns the tensor as the messages of a version have it.
    pub(super) fn bytes(&self, version: Version) -> Result<Vec<u8>, RemoteError> {
        let t = self.record;
        let lacks = |what: String| {
            let name = &t.name;
            RemoteError::Graph(format!(
                "version {version} of the RPC protocol lacks {what} of `{name}`"
            ))
        };
        let kind = t.op.kind();
        let kind = kind.ok_or_else(|| lacks(format!("the op {}", t.op.name())))?;
        let number = version.numbering().number(kind);
        let (op, first) = number.ok_or_else(|| lacks(format!("the op {kind}")))?;
        let dtype = t.dtype.gguf_id();
        if version.numbering().dtype(dtype) != Some(t.dtype) {
            return Err(lacks(format!("the type {}", t.dtype)));
        }
        if t.src.len() > SOURCES {
            return Err(lacks(format!("room for the {} operands", t.src.len())));
        }
        if t.words.len() > PARAMS {
            return Err(lacks(format!("room for the {} parameters", t.words.len())));
        }
        let narrow = |n: u64| u32::try_from(n).map_err(|_| lacks(format!("the size {n}")));
        let mut out = Vec::with_capacity(TENSOR_BYTES as usize);
        out.extend(id(self.position).to_le_bytes());
        out.extend(dtype.to_le_bytes());
        out.extend(self.buffer.to_le_bytes());
        for n in t.layout.ne {
            out.extend(narrow(n)?.to_le_bytes());
        }
        for n in t.layout.nb {
            // The server recomputes the strides of a packed tensor above 4 GiB.
            let low = if t.is_view { narrow(n)? } else { n as u32 };
            out.extend(low.to_le_bytes());
        }
        out.extend(op.to_le_bytes());
        let mut params = [0; PARAMS];
        params[..t.words.len()].copy_from_slice(&t.words);
        if let Some(first) = first {
            params[0] = first;
        }
        out.extend(params.iter().flat_map(|n| n.to_le_bytes()));
        let flags = if kind == OpKind::None { 0 } else { COMPUTE };
        out.extend(flags.to_le_bytes());
        for position in 0..SOURCES {
            let source = t.src.get(position).copied().flatten();
            out.extend(source.map_or(0, id).to_le_bytes());
        }
        let view = if t.is_view { id(t.root) } else { 0 };
        out.extend(view.to_le_bytes());
        out.extend(t.layout.offset.to_le_bytes());
        // The base is the server's, which is not trusted.
        out.extend(self.base.saturating_add(t.layout.offset).to_le_bytes());
        out.extend(name(&t.name));
        out.extend(1_i32.to_le_bytes());
        Ok(out)
    }
}

/// Returns the name, cut at the end of a character.
fn name(text: &str) -> [u8; NAME] {
    let mut end = text.len().min(NAME - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut out = [0; NAME];
    out[..end].copy_from_slice(&text.as_bytes()[..end]);
    out
}
