use crate::fields::Fields;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::{Command, SOURCES};
use crate::refusal::Refusal;
use crate::tensor::Tensor;

/// A byte range of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The tensor.
    pub tensor: Tensor,
    /// The offset in the tensor, in bytes.
    pub offset: u64,
    /// The length in bytes.
    pub size: u64,
}

/// A request. The tensor data of `SET_TENSOR` are separate.
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
    SetTensor(Box<Part>),
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
    GetTensor(Box<Part>),
    /// Copies a tensor.
    CopyTensor {
        /// The source.
        from: Box<Tensor>,
        /// The target.
        to: Box<Tensor>,
    },
    /// Computes a graph.
    GraphCompute(Box<Graph>),
    /// Computes the last graph again.
    GraphRecompute,
    /// Asks for free and total memory.
    GetDeviceMemory,
    /// Announces a new quantised tensor whose rows may need padding.
    InitTensor(Box<Tensor>),
    /// Asks for the allocation size of a tensor.
    GetAllocSize(Box<Tensor>),
    /// Fills a byte range of a tensor with one value.
    MemsetTensor {
        /// The byte range.
        part: Box<Part>,
        /// The value.
        value: u8,
    },
}

impl Request {
    /// Decodes a payload. For `SET_TENSOR`, `data` bytes of tensor data follow the payload.
    ///
    /// # Errors
    /// Returns a [`Refusal`] if the payload is not exactly one valid request.
    pub fn decode(
        command: Command,
        payload: &[u8],
        data: u64,
        limits: &Limits,
    ) -> Result<Request, Refusal> {
        let mut fields = Fields::new(payload);
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
        Command::GraphRecompute => device(from).map(|()| Request::GraphRecompute)?,
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
        Command::SetTensor => {
            let tensor = Tensor::required(from)?;
            // Skip a hint to cache the data by hash.
            from.u8()?;
            Request::SetTensor(Box::new(Part {
                tensor,
                offset: from.u64()?,
                size: data,
            }))
        }
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
            Request::GraphCompute(Box::new(Graph::read(from, limits)?))
        }
        Command::InitTensor => Request::InitTensor(tensor(from)?),
        Command::GetAllocSize => {
            device(from)?;
            let tensor = tensor(from)?;
            for _ in 0..SOURCES {
                Tensor::read(from)?;
            }
            Request::GetAllocSize(tensor)
        }
        Command::MemsetTensor => Request::MemsetTensor {
            part: part(from)?,
            value: from.u8()?,
        },
    })
}

/// Reads a device number, which must be 0.
fn device(from: &mut Fields<'_>) -> Result<(), Refusal> {
    match from.u32()? {
        0 => Ok(()),
        n => Err(Refusal::message(format!("unknown device {n}"))),
    }
}

fn part(from: &mut Fields<'_>) -> Result<Box<Part>, Refusal> {
    Ok(Box::new(Part {
        tensor: Tensor::required(from)?,
        offset: from.u64()?,
        size: from.u64()?,
    }))
}
