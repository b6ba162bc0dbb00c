use std::io::{self, BufReader, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::buffers::{ALIGNMENT, Buffers, Pool, Span};
use crate::chunks::Chunks;
use crate::device::Client;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::{CAPABILITIES, Command, HEAD, Head, Length, TENSOR_BYTES};
use crate::refusal::Refusal;
use crate::request::{Pieces, Request};
use crate::stored::Stored;
use crate::version::Version;

/// The bytes that are read at once. A message of a graph's inputs has some hundreds of bytes.
const BUFFER: usize = 1 << 16;

/// A bidirectional byte stream.
pub trait Stream: Read + Write {
    /// Sets the timeout of reads and writes; `None` lets reads wait without limit.
    ///
    /// # Errors
    /// Returns the error of the system.
    fn wait_at_most(&self, limit: Option<Duration>) -> io::Result<()>;
}

impl Stream for std::net::TcpStream {
    fn wait_at_most(&self, limit: Option<Duration>) -> io::Result<()> {
        self.set_read_timeout(limit)?;
        // A client may stop reading, so writes always have a timeout.
        self.set_write_timeout(limit.or(Some(Duration::from_secs(600))))
    }
}

struct Connection<'a, S> {
    stream: BufReader<S>,
    client: Box<dyn Client + 'a>,
    buffers: Buffers,
    limits: Limits,
    version: Version,
    /// The number of requests.
    requests: u64,
    stored: Stored,
    piece: Vec<u8>,
}

/// The end of a connection that the client closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The client sent requests.
    Closed,
    /// The client sent only the greeting. Clients do this if they have another version of the protocol.
    AfterGreeting,
}

/// Serves a connection until the client closes it.
///
/// # Errors
/// Returns a [`Refusal`] if the server must close the connection.
pub fn serve<S: Stream>(
    stream: S,
    client: Box<dyn Client + '_>,
    pool: Arc<Pool>,
    (version, limits): (Version, Limits),
) -> Result<End, Refusal> {
    stream.wait_at_most(Some(limits.stall))?;
    let mut connection = Connection {
        stream: BufReader::with_capacity(BUFFER, stream),
        client,
        buffers: Buffers::new(pool, limits.buffers),
        limits,
        version,
        requests: 0,
        stored: Stored::default(),
        piece: Vec::new(),
    };
    while let Some(head) = connection.head()? {
        connection.answer(head)?;
        connection.requests += 1;
    }
    Ok(match connection.requests {
        1 => End::AfterGreeting,
        _ => End::Closed,
    })
}

impl<S: Stream> Connection<'_, S> {
    /// Reads the head of the next request; `None` if the client has closed the connection. Only the greeting has a
    /// timeout.
    fn head(&mut self) -> Result<Option<Head>, Refusal> {
        let is_patient = self.requests > 0;
        let mut bytes = [0; HEAD];
        let [first, rest @ ..] = &mut bytes;
        loop {
            match self.stream.read(std::slice::from_mut(first)) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(e) if is_timeout(&e) && is_patient => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.stream.read_exact(rest)?;
        Head::parse(bytes, self.version).map(Some)
    }

    fn answer(&mut self, head: Head) -> Result<(), Refusal> {
        if self.requests == 0 && head.command != Command::Hello {
            let name = head.command.name();
            return Err(Refusal::message(format!("{name} was sent before HELLO")));
        }
        let (allowed, most) = self.bounds(head.command)?;
        if head.length > most {
            return Err(Refusal::Limit {
                what: "bytes of a message",
                asked: head.length,
                most,
            });
        }
        // Tensor data are not decoded.
        let has_data = matches!(head.command, Command::SetTensor | Command::SetTensor2d);
        let fixed = if has_data { allowed } else { head.length };
        let payload = self.payload(fixed)?;
        let limits = (self.version, &self.limits);
        let request = Request::decode(head.command, &payload, head.length - fixed, limits)?;
        self.perform(request)
    }

    /// Returns the least and the greatest length of a command's payload.
    fn bounds(&self, command: Command) -> Result<(u64, u64), Refusal> {
        let allowed = command.length(self.version);
        Ok(match (allowed, command) {
            (Some(Length::Exactly(n)), _) => (n, n),
            (Some(Length::AtLeast(n)), Command::SetTensor | Command::SetTensor2d) => {
                (n, self.buffers.pool().total().saturating_add(n))
            }
            (Some(Length::AtLeast(n)), _) => (n, n + self.limits.tensors * (TENSOR_BYTES + 8)),
            (None, _) => return Err(Refusal::message("an unknown command")),
        })
    }

    /// Reads a payload. Memory grows as bytes arrive.
    fn payload(&mut self, length: u64) -> Result<Vec<u8>, Refusal> {
        let mut out = Vec::new();
        let read = (&mut self.stream).take(length).read_to_end(&mut out)?;
        match read as u64 == length {
            true => Ok(out),
            false => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    fn perform(&mut self, request: Request) -> Result<(), Refusal> {
        match request {
            Request::Hello => self.greet(),
            Request::DeviceCount => self.reply(&1_u32.to_le_bytes()),
            Request::GetAlignment => self.number(ALIGNMENT),
            Request::GetMaxSize => self.number(self.buffers.pool().total()),
            Request::GetDeviceMemory => {
                let pool = self.buffers.pool();
                self.numbers([pool.free(), pool.total()])
            }
            Request::AllocBuffer { size } => self.allocate(size),
            Request::BufferGetBase { buffer } => {
                let (base, _) = self.buffers.whole(buffer)?;
                self.number(base)
            }
            Request::FreeBuffer { buffer } => {
                self.buffers.free(buffer)?;
                self.stored.freed(buffer);
                self.client.freed(buffer)
            }
            Request::BufferClear { buffer, value } => {
                let (_, whole) = self.buffers.whole(buffer)?;
                self.client.fill(whole, value)
            }
            Request::MemsetTensor { part, value } => {
                let span = self.buffers.pieces(&part)?;
                self.client.fill(span, value)
            }
            // This server does not pad quantised rows.
            Request::InitTensor(tensor) => self.buffers.span(&tensor).map(|_| ()),
            Request::GetAllocSize(tensor) => {
                let bytes = tensor.bytes().unwrap_or(u64::MAX);
                self.number(bytes)
            }
            Request::SetTensor(pieces) | Request::SetTensor2d(pieces) => {
                let span = self.buffers.pieces(&pieces)?;
                self.client.begin_write(&pieces.tensor, span)?;
                self.receive(span, &pieces)
            }
            Request::GetTensor(pieces) | Request::GetTensor2d(pieces) => {
                let span = self.buffers.pieces(&pieces)?;
                self.send(span, &pieces)
            }
            Request::SetTensorHash {
                tensor,
                offset,
                hash,
            } => {
                let mut span = self.buffers.span(&tensor)?;
                let left = span.len.checked_sub(offset);
                span.len = left.ok_or_else(|| beyond(&tensor.name))?;
                span.start += offset;
                let has = self.client.has(&tensor, span, hash);
                self.reply(&[u8::from(has)])
            }
            Request::CopyTensor { from, to } => {
                let (source, target) = (self.buffers.span(&from)?, self.buffers.span(&to)?);
                let alike = from.dtype == to.dtype && from.ne == to.ne && from.nb == to.nb;
                if alike {
                    self.client.copy(source, target)?;
                }
                self.reply(&[u8::from(alike)])
            }
            // The client then adds the parts itself.
            Request::CommInit => self.reply(&[0]),
            Request::CommAllreduce(_) => Err(no_communicator("COMM_ALLREDUCE")),
            Request::CommFree => Err(no_communicator("COMM_FREE")),
            Request::GraphCompute { uid, graph } => {
                let graph = Arc::new(*graph);
                self.stored.store(uid, &graph, &self.limits)?;
                self.compute(&graph)
            }
            Request::GraphRecompute { uid } => {
                let graph = self.stored.find(uid)?;
                self.compute(&graph)
            }
        }
    }

    fn compute(&mut self, graph: &Arc<Graph>) -> Result<(), Refusal> {
        // Buffers may have changed since the graph arrived.
        for &node in &graph.nodes {
            let sources = graph.sources(node).into_iter().flatten();
            for at in sources.chain([node]) {
                let t = &graph.tensors[at];
                if t.buffer != 0 {
                    self.buffers.span(t)?;
                }
            }
        }
        self.client.compute(graph, &self.buffers)
    }

    fn greet(&mut self) -> Result<(), Refusal> {
        if self.requests > 0 {
            return Err(Refusal::message("HELLO was sent twice"));
        }
        let mut reply = self.version.numbers().to_vec();
        reply.push(0);
        reply.extend([0; CAPABILITIES as usize]);
        self.reply(&reply)
    }

    /// Allocates a buffer and replies with its address and size, or zeros if memory is insufficient.
    fn allocate(&mut self, size: u64) -> Result<(), Refusal> {
        let Some(buffer) = self.buffers.allocate(size)? else {
            return self.numbers([0, 0]);
        };
        let (_, whole) = self.buffers.whole(buffer)?;
        self.client.allocated(whole)?;
        self.numbers([buffer, size])
    }

    /// Receives the data of `pieces`, which are within `span`.
    fn receive(&mut self, span: Span, pieces: &Pieces) -> Result<(), Refusal> {
        let mut chunks = Chunks::new(span, pieces);
        while let Some(chunk) = chunks.next() {
            self.piece.resize(chunk.bytes, 0);
            self.stream.read_exact(&mut self.piece)?;
            let mut data = self.piece.as_slice();
            for part in &chunk.parts {
                let n = usize::try_from(part.len).unwrap_or(usize::MAX);
                let (own, rest) = data.split_at(n.min(data.len()));
                self.client.write(part.buffer, part.start, own)?;
                data = rest;
            }
        }
        Ok(())
    }

    /// Sends the data of `pieces`, which are within `span`. The pieces are disjoint, so the reply is not longer than
    /// the span.
    fn send(&mut self, span: Span, pieces: &Pieces) -> Result<(), Refusal> {
        let total = pieces.size * pieces.count;
        self.stream.get_mut().write_all(&total.to_le_bytes())?;
        let mut chunks = Chunks::new(span, pieces);
        while let Some(chunk) = chunks.next() {
            self.piece.clear();
            for part in &chunk.parts {
                self.client.read(*part, &mut self.piece)?;
            }
            self.stream.get_mut().write_all(&self.piece)?;
        }
        Ok(self.stream.get_mut().flush()?)
    }

    fn number(&mut self, n: u64) -> Result<(), Refusal> {
        self.numbers([n])
    }

    fn numbers<const N: usize>(&mut self, all: [u64; N]) -> Result<(), Refusal> {
        let bytes: Vec<u8> = all.iter().flat_map(|n| n.to_le_bytes()).collect();
        self.reply(&bytes)
    }

    fn reply(&mut self, payload: &[u8]) -> Result<(), Refusal> {
        let mut message = (payload.len() as u64).to_le_bytes().to_vec();
        message.extend(payload);
        self.stream.get_mut().write_all(&message)?;
        Ok(self.stream.get_mut().flush()?)
    }
}

/// Systems differ in the error of a read that waits too long.
fn is_timeout(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
    )
}

fn no_communicator(name: &str) -> Refusal {
    Refusal::message(format!(
        "{name} was sent, but the server has refused COMM_INIT"
    ))
}

fn beyond(name: &str) -> Refusal {
    Refusal::Memory(format!("the offset exceeds the tensor \"{name}\""))
}
