//! Requests, decoded.

use crate::fields::Fields;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::{Command, SOURCES};
use crate::refusal::Refusal;
use crate::tensor::Tensor;

/// Bytes of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The tensor.
    pub tensor: Tensor,
    /// The bytes before it.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// A request. Of `SET_TENSOR` it has what stands before the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// The greeting.
    Hello,
    /// The number of devices.
    DeviceCount,
    /// Memory of a device.
    AllocBuffer {
        /// Its bytes.
        size: u64,
    },
    /// The alignment of tensors.
    GetAlignment,
    /// The largest buffer.
    GetMaxSize,
    /// The first address of a buffer.
    BufferGetBase {
        /// The buffer.
        buffer: u64,
    },
    /// The end of a buffer.
    FreeBuffer {
        /// The buffer.
        buffer: u64,
    },
    /// One value for all bytes of a buffer.
    BufferClear {
        /// The buffer.
        buffer: u64,
        /// The value.
        value: u8,
    },
    /// Data, which follow.
    SetTensor(Box<Part>),
    /// Data by their hash.
    SetTensorHash {
        /// The tensor.
        tensor: Box<Tensor>,
        /// The bytes before the data.
        offset: u64,
        /// FNV-1a of the data.
        hash: u64,
    },
    /// Data, to be sent back.
    GetTensor(Box<Part>),
    /// A copy.
    CopyTensor {
        /// From here.
        from: Box<Tensor>,
        /// To here.
        to: Box<Tensor>,
    },
    /// A graph, to be computed.
    GraphCompute(Box<Graph>),
    /// The last graph again.
    GraphRecompute,
    /// Free and all memory.
    GetDeviceMemory,
    /// A quantised tensor with short rows was made.
    InitTensor(Box<Tensor>),
    /// The bytes that a tensor takes.
    GetAllocSize(Box<Tensor>),
    /// One value for some bytes of a tensor.
    MemsetTensor {
        /// The bytes.
        part: Box<Part>,
        /// The value.
        value: u8,
    },
}

impl Request {
    /// Decodes a payload: all of it, or of `SET_TENSOR` what stands before the `data` further bytes.
    ///
    /// # Errors
    /// [`Refusal`] for anything that is not exactly such a request.
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
            // Capabilities of other transports than TCP: there are none here.
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
            // The client may keep what it sends by its hash; nothing is kept here.
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

/// Reads a device, of which there is one.
fn device(from: &mut Fields<'_>) -> Result<(), Refusal> {
    match from.u32()? {
        0 => Ok(()),
        n => Err(Refusal::message(format!("there is no device {n}"))),
    }
}

fn part(from: &mut Fields<'_>) -> Result<Box<Part>, Refusal> {
    Ok(Box::new(Part {
        tensor: Tensor::required(from)?,
        offset: from.u64()?,
        size: from.u64()?,
    }))
}
