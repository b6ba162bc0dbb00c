use crate::fields::Fields;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::{Command, SOURCES};
use crate::refusal::Refusal;
use crate::tensor::Tensor;
use crate::version::Version;

/// Equal pieces of a tensor: piece `i` starts at `offset + i * stride`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The tensor.
    pub tensor: Tensor,
    /// The offset of the first piece in the tensor, in bytes.
    pub offset: u64,
    /// The length of a piece in bytes.
    pub size: u64,
    /// The number of pieces.
    pub count: u64,
    /// The distance of two pieces in bytes.
    pub stride: u64,
}

impl Pieces {
    /// Returns one piece.
    pub const fn one(tensor: Tensor, offset: u64, size: u64) -> Pieces {
        Pieces {
            tensor,
            offset,
            size,
            count: 1,
            stride: 0,
        }
    }
}

/// A request. The tensor data of `SET_TENSOR` and `SET_TENSOR_2D` are separate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The greeting.
    Hello,
    /// Asks for the number of devices.
    DeviceCount,
    /// Allocates a buffer.
    AllocBuffer {
        /// The size in bytes.
        size: u64,
    },
    /// Asks for the alignment of tensors.
    GetAlignment,
    /// Asks for the maximum buffer size.
    GetMaxSize,
    /// Asks for the address of a buffer.
    BufferGetBase {
        /// The buffer.
        buffer: u64,
    },
    /// Frees a buffer.
    FreeBuffer {
        /// The buffer.
        buffer: u64,
    },
    /// Fills a buffer with one byte value.
    BufferClear {
        /// The buffer.
        buffer: u64,
        /// The value.
        value: u8,
    },
    /// Writes tensor data, which follow the request.
    SetTensor(Box<Pieces>),
    /// Asks if the device has tensor data with this hash.
    SetTensorHash {
        /// The tensor.
        tensor: Box<Tensor>,
        /// The offset in the tensor, in bytes.
        offset: u64,
        /// The FNV-1a hash of the data.
        hash: u64,
    },
    /// Reads tensor data.
    GetTensor(Box<Pieces>),
    /// Copies a tensor.
    CopyTensor {
        /// The source.
        from: Box<Tensor>,
        /// The target.
        to: Box<Tensor>,
    },
    /// Computes a graph.
    GraphCompute {
        /// The number by which the graph is stored; 0 if it is not stored.
        uid: u64,
        /// The graph.
        graph: Box<Graph>,
    },
    /// Computes a stored graph again.
    GraphRecompute {
        /// The graph's number.
        uid: u64,
    },
    /// Asks for free and total memory.
    GetDeviceMemory,
    /// Announces a new quantised tensor whose rows may need padding.
    InitTensor(Box<Tensor>),
    /// Asks for the allocation size of a tensor.
    GetAllocSize(Box<Tensor>),
    /// Fills a byte range of a tensor with one value.
    MemsetTensor {
        /// The byte range.
        part: Box<Pieces>,
        /// The value.
        value: u8,
    },
    /// Writes pieces of a tensor. Their data follow the request, without gaps.
    SetTensor2d(Box<Pieces>),
    /// Reads pieces of a tensor.
    GetTensor2d(Box<Pieces>),
    /// Asks for a direct connection to another server for sums.
    CommInit,
    /// Adds the other server's tensor to this server's tensor.
    CommAllreduce(Box<Tensor>),
    /// Closes the connection to the other server.
    CommFree,
}

/// The number of the only stored graph in version 7.
const LAST_GRAPH: u64 = 1;

impl Request {
    /// Decodes a payload. For `SET_TENSOR` and `SET_TENSOR_2D`, `data` bytes of tensor data follow the payload.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the payload is not exactly one valid request.
    pub fn decode(
        command: Command,
        payload: &[u8],
        data: u64,
        (version, limits): (Version, &Limits),
    ) -> Result<Request, Refusal> {
        let mut fields = Fields::new(payload, version);
        let request = decode(command, &mut fields, data, limits)?;
        fields.end()?;
        Ok(request)
    }
}

fn decode(
    command: Command,
    from: &mut Fields<'_>,
    data: u64,
    limits: &Limits,
) -> Result<Request, Refusal> {
    let tensor = |from: &mut Fields<'_>| Tensor::required(from).map(Box::new);
    Ok(match command {
        Command::Hello => {
            // Skip the capabilities of transports other than TCP.
            from.array::<24>()?;
            Request::Hello
        }
        Command::DeviceCount => Request::DeviceCount,
        Command::AllocBuffer => {
            device(from)?;
            Request::AllocBuffer { size: from.u64()? }
        }
        Command::GetAlignment => device(from).map(|()| Request::GetAlignment)?,
        Command::GetMaxSize => device(from).map(|()| Request::GetMaxSize)?,
        Command::GetDeviceMemory => device(from).map(|()| Request::GetDeviceMemory)?,
        Command::GraphRecompute => {
            device(from)?;
            Request::GraphRecompute { uid: uid(from)? }
        }
        Command::BufferGetBase => Request::BufferGetBase {
            buffer: from.u64()?,
        },
        Command::FreeBuffer => Request::FreeBuffer {
            buffer: from.u64()?,
        },
        Command::BufferClear => Request::BufferClear {
            buffer: from.u64()?,
            value: from.u8()?,
        },
        Command::SetTensor => set_tensor(from, data)?,
        Command::SetTensorHash => Request::SetTensorHash {
            tensor: tensor(from)?,
            offset: from.u64()?,
            hash: from.u64()?,
        },
        Command::GetTensor => Request::GetTensor(part(from)?),
        Command::CopyTensor => Request::CopyTensor {
            from: tensor(from)?,
            to: tensor(from)?,
        },
        Command::GraphCompute => {
            device(from)?;
            let uid = uid(from)?;
            let graph = Box::new(Graph::read(from, limits)?);
            Request::GraphCompute { uid, graph }
        }
        Command::InitTensor => Request::InitTensor(tensor(from)?),
        Command::GetAllocSize => get_alloc_size(from)?,
        Command::MemsetTensor => Request::MemsetTensor {
            part: part(from)?,
            value: from.u8()?,
        },
        Command::SetTensor2d => set_tensor_2d(from, data)?,
        Command::GetTensor2d => Request::GetTensor2d(Box::new(pieces(from)?)),
        Command::CommInit => comm_init(from)?,
        Command::CommAllreduce => {
            device(from)?;
            Request::CommAllreduce(tensor(from)?)
        }
        Command::CommFree => device(from).map(|()| Request::CommFree)?,
    })
}

fn set_tensor(from: &mut Fields<'_>, data: u64) -> Result<Request, Refusal> {
    let tensor = Tensor::required(from)?;
    // Skip a hint to cache the data by hash.
    from.u8()?;
    let pieces = Pieces::one(tensor, from.u64()?, data);
    Ok(Request::SetTensor(Box::new(pieces)))
}

fn set_tensor_2d(from: &mut Fields<'_>, data: u64) -> Result<Request, Refusal> {
    let pieces = pieces(from)?;
    // Compare by division, because the product may overflow.
    let is_whole =
        data.checked_div(pieces.size) == Some(pieces.count) && data.is_multiple_of(pieces.size);
    if !is_whole {
        return Err(Refusal::message(format!(
            "SET_TENSOR_2D has {data} bytes of data for {} pieces of {} bytes",
            pieces.count, pieces.size
        )));
    }
    Ok(Request::SetTensor2d(Box::new(pieces)))
}

/// The sources do not change the size.
fn get_alloc_size(from: &mut Fields<'_>) -> Result<Request, Refusal> {
    device(from)?;
    let tensor = Tensor::required(from)?;
    for _ in 0..SOURCES {
        Tensor::read(from)?;
    }
    Ok(Request::GetAllocSize(Box::new(tensor)))
}

/// Skips the other server's rank, port and host, because this server never connects to it.
fn comm_init(from: &mut Fields<'_>) -> Result<Request, Refusal> {
    device(from)?;
    from.array::<12>()?;
    from.array::<64>()?;
    Ok(Request::CommInit)
}

/// Reads the number of a stored graph. Version 7 stores only the last graph, without a number.
fn uid(from: &mut Fields<'_>) -> Result<u64, Refusal> {
    match from.version() {
        Version::V7 => Ok(LAST_GRAPH),
        Version::V8 => from.u64(),
    }
}

fn pieces(from: &mut Fields<'_>) -> Result<Pieces, Refusal> {
    let pieces = Pieces {
        tensor: Tensor::required(from)?,
        offset: from.u64()?,
        size: from.u64()?,
        count: from.u64()?,
        stride: from.u64()?,
    };
    let name = &pieces.tensor.name;
    if pieces.size == 0 || pieces.count == 0 {
        return Err(Refusal::message(format!(
            "a 2D transfer of the tensor \"{name}\" has no bytes"
        )));
    }
    if pieces.count > 1 && pieces.stride < pieces.size {
        return Err(Refusal::message(format!(
            "pieces of the tensor \"{name}\" overlap: {} bytes each, {} bytes apart",
            pieces.size, pieces.stride
        )));
    }
    Ok(pieces)
}

/// Reads a device number, which must be 0.
fn device(from: &mut Fields<'_>) -> Result<(), Refusal> {
    match from.u32()? {
        0 => Ok(()),
        n => Err(Refusal::message(format!("unknown device {n}"))),
    }
}

fn part(from: &mut Fields<'_>) -> Result<Box<Pieces>, Refusal> {
    let tensor = Tensor::required(from)?;
    Ok(Box::new(Pieces::one(tensor, from.u64()?, from.u64()?)))
}
