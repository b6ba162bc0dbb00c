use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::buffers::{ALIGNMENT, Buffers, Pool, Span};
use crate::device::Client;
use crate::graph::Graph;
use crate::limits::Limits;
use crate::protocol::{CAPABILITIES, Command, HEAD, Head, Length, TENSOR_BYTES, VERSION};
use crate::refusal::Refusal;
use crate::request::Request;

/// The maximum number of bytes of tensor data per call of [`Client::write`].
const PIECE: usize = 1 << 20;

/// A bidirectional byte stream.
pub trait Stream: Read + Write {
    /// Sets the read timeout; `None` removes it.
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
    stream: S,
    client: Box<dyn Client + 'a>,
    buffers: Buffers,
    limits: Limits,
    greeted: bool,
    last: Option<Arc<Graph>>,
    piece: Vec<u8>,
}

/// Serves a connection until the client closes it.
///
/// # Errors
/// Returns a [`Refusal`] if the server must close the connection.
pub fn serve<S: Stream>(
    stream: S,
    client: Box<dyn Client + '_>,
    pool: Arc<Pool>,
    limits: Limits,
) -> Result<(), Refusal> {
    let mut connection = Connection {
        stream,
        client,
        buffers: Buffers::new(pool, limits.buffers),
        limits,
        greeted: false,
        last: None,
        piece: Vec::new(),
    };
    while let Some(head) = connection.head()? {
        connection.answer(head)?;
    }
    Ok(())
}

impl<S: Stream> Connection<'_, S> {
    /// Reads the head of the next request; `None` if the client has closed the connection. Only the greeting has a
    /// timeout.
    fn head(&mut self) -> Result<Option<Head>, Refusal> {
        let patience = (!self.greeted).then_some(self.limits.stall);
        self.stream.wait_at_most(patience)?;
        let mut bytes = [0; HEAD];
        let [first, rest @ ..] = &mut bytes;
        loop {
            match self.stream.read(std::slice::from_mut(first)) {
                Ok(0) => return Ok(None),
                Ok(_) => break,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(e) => return Err(e.into()),
            }
        }
        self.stream.wait_at_most(Some(self.limits.stall))?;
        self.stream.read_exact(rest)?;
        Head::parse(bytes).map(Some)
    }

    fn answer(&mut self, head: Head) -> Result<(), Refusal> {
        if !self.greeted && head.command != Command::Hello {
            let name = head.command.name();
            return Err(Refusal::message(format!("{name} was sent before HELLO")));
        }
        let most = self.most(head.command);
        if head.length > most {
            return Err(Refusal::Limit {
                what: "bytes of a message",
                asked: head.length,
                most,
            });
        }
        // Tensor data are not decoded.
        let fixed = match (head.command, head.command.length()) {
            (Command::SetTensor, Length::AtLeast(n)) => n,
            _ => head.length,
        };
        let payload = self.payload(fixed)?;
        let request = Request::decode(head.command, &payload, head.length - fixed, &self.limits)?;
        self.perform(request)
    }

    fn most(&self, command: Command) -> u64 {
        match command.length() {
            Length::Exactly(n) => n,
            Length::AtLeast(n) if command == Command::SetTensor => {
                self.buffers.pool().total().saturating_add(n)
            }
            Length::AtLeast(n) => n + self.limits.tensors * (TENSOR_BYTES + 8),
        }
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
                self.client.freed(buffer);
                // The last graph may refer to the freed buffer.
                self.last = None;
                Ok(())
            }
            Request::BufferClear { buffer, value } => {
                let (_, whole) = self.buffers.whole(buffer)?;
                self.client.fill(whole, value)
            }
            Request::MemsetTensor { part, value } => {
                let span = self.buffers.part(&part)?;
                self.client.fill(span, value)
            }
            // This server does not pad quantised rows.
            Request::InitTensor(tensor) => self.buffers.span(&tensor).map(|_| ()),
            Request::GetAllocSize(tensor) => {
                let bytes = tensor.bytes().unwrap_or(u64::MAX);
                self.number(bytes)
            }
            Request::SetTensor(part) => {
                let span = self.buffers.part(&part)?;
                self.client.begin_write(&part, span)?;
                self.receive(span)
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
            Request::GetTensor(part) => {
                let span = self.buffers.part(&part)?;
                self.send(span)
            }
            Request::CopyTensor { from, to } => {
                let (source, target) = (self.buffers.span(&from)?, self.buffers.span(&to)?);
                let alike = from.dtype == to.dtype && from.ne == to.ne && from.nb == to.nb;
                if alike {
                    self.client.copy(source, target)?;
                }
                self.reply(&[u8::from(alike)])
            }
            Request::GraphCompute(graph) => {
                let graph = Arc::new(*graph);
                self.last = Some(Arc::clone(&graph));
                self.compute(&graph)
            }
            Request::GraphRecompute => {
                let last = self.last.clone();
                let graph = last
                    .ok_or_else(|| Refusal::message("GRAPH_RECOMPUTE was sent before a graph"))?;
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
        if self.greeted {
            return Err(Refusal::message("HELLO was sent twice"));
        }
        self.greeted = true;
        let mut reply = VERSION.to_vec();
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

    fn receive(&mut self, span: Span) -> Result<(), Refusal> {
        let mut done = 0;
        while done < span.len {
            let n = usize::try_from(span.len - done).map_or(PIECE, |n| n.min(PIECE));
            self.piece.resize(n, 0);
            self.stream.read_exact(&mut self.piece)?;
            self.client
                .write(span.buffer, span.start + done, &self.piece)?;
            done += n as u64;
        }
        Ok(())
    }

    fn send(&mut self, span: Span) -> Result<(), Refusal> {
        self.stream.write_all(&span.len.to_le_bytes())?;
        let mut done = 0;
        while done < span.len {
            let len = (span.len - done).min(PIECE as u64);
            let start = span.start + done;
            self.piece.clear();
            let piece = Span { start, len, ..span };
            self.client.read(piece, &mut self.piece)?;
            self.stream.write_all(&self.piece)?;
            done += len;
        }
        Ok(self.stream.flush()?)
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
        self.stream.write_all(&message)?;
        Ok(self.stream.flush()?)
    }
}

fn beyond(name: &str) -> Refusal {
    Refusal::Memory(format!("the offset exceeds the tensor \"{name}\""))
}
