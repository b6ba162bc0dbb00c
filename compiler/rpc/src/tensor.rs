use tpc_ggml::capture::packed;
use tpc_ggml::op::OpKind;
use tpc_ir::{DType, RANK};

use crate::fields::Fields;
use crate::protocol::SOURCES;
use crate::refusal::Refusal;

/// The maximum number of elements; it exceeds the memory of any machine.
const MAX_ELEMENTS: u64 = 1 << 48;
const PARAMS: usize = 16;
/// The length of a name in bytes.
const NAME: usize = 64;

/// Ops whose parameters are the address of a function.
const CLIENT_FUNCTIONS: [OpKind; 4] = [
    OpKind::MapCustom1,
    OpKind::MapCustom2,
    OpKind::MapCustom3,
    OpKind::Custom,
];

/// A client's tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The client's id of the tensor; 0 means no tensor.
    pub id: u64,
    /// The element type.
    pub dtype: DType,
    /// The id of the buffer; 0 if the memory is not on this server.
    pub buffer: u64,
    /// The sizes.
    pub ne: [u64; RANK],
    /// The strides in bytes.
    pub nb: [u64; RANK],
    /// The op. The kinds of `UNARY` and `GLU` are separate ops.
    pub op: OpKind,
    /// ggml's `op_params`.
    pub params: [i32; PARAMS],
    /// ggml's flags.
    pub flags: i32,
    /// The ids of the sources; 0 if absent.
    pub src: [u64; SOURCES],
    /// The id of the viewed tensor; 0 if this tensor is not a view.
    pub view_src: u64,
    /// The offset in the viewed tensor, in bytes.
    pub view_offs: u64,
    /// The address of the first element.
    pub data: u64,
    /// The name, for messages.
    pub name: String,
    /// The number of uses in the client's graph; a message may have only a part of that graph.
    pub use_count: i32,
}

impl Tensor {
    /// Reads a tensor; `None` for id 0.
    pub(crate) fn read(from: &mut Fields<'_>) -> Result<Option<Tensor>, Refusal> {
        let id = from.u64()?;
        let type_id = from.u32()?;
        let buffer = from.u64()?;
        let ne = array(|| from.u32())?.map(u64::from);
        let nb = array(|| from.u32())?.map(u64::from);
        let op = from.u32()?;
        let params = array(|| from.i32())?;
        let flags = from.i32()?;
        let src = array(|| from.u64())?;
        let view_src = from.u64()?;
        let view_offs = from.u64()?;
        let data = from.u64()?;
        let name = name(from.array::<NAME>()?);
        let use_count = from.i32()?;
        if id == 0 {
            return Ok(None);
        }
        let wrong = |what: String| Refusal::Tensor {
            name: name.clone(),
            what,
        };
        let numbering = from.version().numbering();
        let dtype = (numbering.dtype(type_id))
            .ok_or_else(|| wrong(format!("unknown element type {type_id}")))?;
        let op = (numbering.op(op, params[0]))
            .ok_or_else(|| wrong(format!("unknown op {op}, kind {}", params[0])))?;
        if buffer == 0 && data != 0 {
            return Err(wrong(format!("an address, {data:#x}, without a buffer")));
        }
        if CLIENT_FUNCTIONS.contains(&op) {
            return Err(wrong(format!(
                "{op} calls a function at an address of the client's process"
            )));
        }
        let nb = strides(dtype, ne, nb, view_src != 0).map_err(wrong)?;
        let tensor = Tensor {
            id,
            dtype,
            buffer,
            ne,
            nb,
            op,
            params,
            flags,
            src,
            view_src,
            view_offs,
            data,
            name,
            use_count,
        };
        let reached = tensor.bytes().and_then(|n| tensor.data.checked_add(n));
        match reached {
            Some(_) => Ok(Some(tensor)),
            None => Err(Refusal::Tensor {
                name: tensor.name,
                what: "the tensor ends after the last address".to_owned(),
            }),
        }
    }

    pub(crate) fn required(from: &mut Fields<'_>) -> Result<Tensor, Refusal> {
        Tensor::read(from)?.ok_or_else(|| Refusal::message("a tensor is missing"))
    }

    /// Returns the number of bytes from the first element to the end of the last element; `None` on overflow.
    pub fn bytes(&self) -> Option<u64> {
        if self.ne.contains(&0) {
            return Some(0);
        }
        let [ne0, rest @ ..] = self.ne;
        let blocks = [ne0 / self.dtype.block_len(), rest[0], rest[1], rest[2]];
        blocks
            .iter()
            .zip(self.nb)
            .try_fold(self.dtype.block_bytes(), |at, (&n, nb)| {
                at.checked_add((n - 1).checked_mul(nb)?)
            })
    }

    /// True if the axes are in order and without gaps.
    pub fn is_packed(&self) -> bool {
        self.nb == packed(self.dtype, self.ne)
    }
}

fn array<T: Copy + Default, const N: usize>(
    mut next: impl FnMut() -> Result<T, Refusal>,
) -> Result<[T; N], Refusal> {
    let mut out = [T::default(); N];
    for to in &mut out {
        *to = next()?;
    }
    Ok(out)
}

fn name(bytes: [u8; NAME]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(NAME);
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Returns the strides. A packed tensor above 4 GiB has truncated 32-bit strides, which are recomputed from the
/// sizes.
fn strides(
    dtype: DType,
    ne: [u64; RANK],
    nb: [u64; RANK],
    is_view: bool,
) -> Result<[u64; RANK], String> {
    let elements = ne.iter().try_fold(1_u64, |a, &n| a.checked_mul(n.max(1)));
    if elements.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(format!("sizes {ne:?} are larger than any memory"));
    }
    if !ne[0].is_multiple_of(dtype.block_len()) {
        return Err(format!(
            "rows of {} elements are not whole blocks of {dtype}",
            ne[0]
        ));
    }
    let whole = packed(dtype, ne);
    let cut = whole.map(|n| n & u64::from(u32::MAX));
    Ok(if !is_view && nb == cut { whole } else { nb })
}
