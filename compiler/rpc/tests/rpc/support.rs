use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tpc_rpc::{
    Buffers, Client, Device, End, Graph, Limits, Pool, Refusal, Span, Stream, Tensor, Version,
    serve,
};

pub(crate) const MEMORY: u64 = 1 << 20;

pub(crate) const BASE: u64 = 1 << 40;

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) id: u64,
    pub(crate) dtype: u32,
    pub(crate) buffer: u64,
    pub(crate) ne: [u32; 4],
    pub(crate) op: u32,
    pub(crate) params: [i32; 16],
    pub(crate) flags: i32,
    pub(crate) src: [u64; 10],
    pub(crate) view_src: u64,
    pub(crate) data: u64,
    pub(crate) name: &'static str,
}

impl Wire {
    pub(crate) fn new(id: u64, ne: [u32; 4], offset: u64, name: &'static str) -> Wire {
        Wire {
            id,
            dtype: 0,
            buffer: BASE,
            ne,
            op: 0,
            params: [0; 16],
            flags: 16,
            src: [0; 10],
            view_src: 0,
            data: BASE + offset,
            name,
        }
    }

    pub(crate) fn op(mut self, op: u32, src: &[u64]) -> Wire {
        self.op = op;
        self.src[..src.len()].copy_from_slice(src);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend(self.id.to_le_bytes());
        out.extend(self.dtype.to_le_bytes());
        out.extend(self.buffer.to_le_bytes());
        // Types 27 and 28 have 8 bytes per element.
        let mut nb = [if self.dtype >= 27 { 8 } else { 4_u32 }; 4];
        for i in 1..4 {
            nb[i] = nb[i - 1].wrapping_mul(self.ne[i - 1]);
        }
        out.extend(self.ne.iter().chain(&nb).flat_map(|n| n.to_le_bytes()));
        out.extend(self.op.to_le_bytes());
        out.extend(self.params.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.flags.to_le_bytes());
        out.extend(self.src.iter().flat_map(|n| n.to_le_bytes()));
        out.extend(self.view_src.to_le_bytes());
        out.extend(0_u64.to_le_bytes());
        out.extend(self.data.to_le_bytes());
        let mut name = [0; 64];
        name[..self.name.len()].copy_from_slice(self.name.as_bytes());
        out.extend(name);
        out.extend(1_i32.to_le_bytes());
        assert_eq!(out.len() as u64, tpc_rpc::protocol::TENSOR_BYTES);
        out
    }
}

pub(crate) fn message(command: u8, parts: &[&[u8]]) -> Vec<u8> {
    let payload = parts.concat();
    let mut out = vec![command];
    out.extend((payload.len() as u64).to_le_bytes());
    out.extend(payload);
    out
}

/// The number of the conversation's graph in version 8.
pub(crate) const UID: u64 = 77;

/// Returns GRAPH_COMPUTE, which stores the graph by [`UID`] in version 8.
pub(crate) fn compute(version: Version, nodes: &[u64], tensors: &[Wire]) -> Vec<u8> {
    compute_as(version, UID, nodes, tensors)
}

pub(crate) fn compute_as(version: Version, uid: u64, nodes: &[u64], tensors: &[Wire]) -> Vec<u8> {
    let graph = graph(nodes, tensors);
    match version {
        Version::V7 => message(10, &[&[0; 4], &graph]),
        Version::V8 => message(10, &[&[0; 4], &uid.to_le_bytes(), &graph]),
    }
}

/// Returns GRAPH_RECOMPUTE.
pub(crate) fn recompute(version: Version) -> Vec<u8> {
    recompute_as(version, UID)
}

pub(crate) fn recompute_as(version: Version, uid: u64) -> Vec<u8> {
    match version {
        Version::V7 => message(16, &[&[0; 4]]),
        Version::V8 => message(16, &[&[0; 4], &uid.to_le_bytes()]),
    }
}

/// Returns a graph without device and number.
pub(crate) fn graph(nodes: &[u64], tensors: &[Wire]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend((nodes.len() as u32).to_le_bytes());
    out.extend(nodes.iter().flat_map(|n| n.to_le_bytes()));
    out.extend((tensors.len() as u32).to_le_bytes());
    out.extend(tensors.iter().flat_map(Wire::bytes));
    out
}

pub(crate) struct Wires<'a> {
    sent: &'a [u8],
    pub(crate) got: &'a mut Vec<u8>,
}

impl<'a> Wires<'a> {
    pub(crate) fn new(sent: &'a [u8], got: &'a mut Vec<u8>) -> Wires<'a> {
        Wires { sent, got }
    }
}

impl Read for Wires<'_> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.sent.read(to)
    }
}

impl Write for Wires<'_> {
    fn write(&mut self, from: &[u8]) -> io::Result<usize> {
        self.got.write(from)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream for Wires<'_> {
    fn wait_at_most(&self, _limit: Option<Duration>) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
pub(crate) struct Bytes {
    pub(crate) graphs: Arc<AtomicUsize>,
}

impl Device for Bytes {
    fn connect(&self) -> Box<dyn Client> {
        Box::new(Held {
            buffers: BTreeMap::new(),
            graphs: Arc::clone(&self.graphs),
        })
    }
}

struct Held {
    buffers: BTreeMap<u64, Vec<u8>>,
    graphs: Arc<AtomicUsize>,
}

impl Held {
    fn at(&mut self, span: Span) -> &mut [u8] {
        let all = self.buffers.get_mut(&span.buffer).expect("a buffer");
        &mut all[span.start as usize..(span.start + span.len) as usize]
    }
}

impl Client for Held {
    fn allocated(&mut self, whole: Span) -> Result<(), Refusal> {
        self.buffers
            .insert(whole.buffer, vec![0; whole.len as usize]);
        Ok(())
    }

    fn freed(&mut self, buffer: u64) -> Result<(), Refusal> {
        self.buffers.remove(&buffer);
        Ok(())
    }

    fn fill(&mut self, span: Span, value: u8) -> Result<(), Refusal> {
        self.at(span).fill(value);
        Ok(())
    }

    fn begin_write(&mut self, tensor: &Tensor, span: Span) -> Result<(), Refusal> {
        assert!(tensor.bytes().is_some_and(|bytes| span.len <= bytes));
        Ok(())
    }

    fn write(&mut self, buffer: u64, start: u64, data: &[u8]) -> Result<(), Refusal> {
        let len = data.len() as u64;
        self.at(Span { buffer, start, len }).copy_from_slice(data);
        Ok(())
    }

    fn has(&mut self, _tensor: &Tensor, _span: Span, _hash: u64) -> bool {
        false
    }

    fn read(&mut self, span: Span, out: &mut Vec<u8>) -> Result<(), Refusal> {
        out.extend_from_slice(self.at(span));
        Ok(())
    }

    fn copy(&mut self, from: Span, to: Span) -> Result<(), Refusal> {
        let data = self.at(from).to_vec();
        self.at(to).copy_from_slice(&data);
        Ok(())
    }

    fn compute(&mut self, graph: &Arc<Graph>, buffers: &Buffers) -> Result<(), Refusal> {
        for &node in &graph.nodes {
            buffers.span(&graph.tensors[node])?;
        }
        self.graphs.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

pub(crate) fn talk(version: Version, sent: &[u8]) -> (Result<End, Refusal>, Vec<u8>) {
    let pool = Arc::new(Pool::new(MEMORY));
    let mut got = Vec::new();
    let stream = Wires {
        sent,
        got: &mut got,
    };
    let device = Bytes::default();
    let end = serve(
        stream,
        device.connect(),
        Arc::clone(&pool),
        (version, Limits::new(MEMORY)),
    );
    assert_eq!(pool.free(), MEMORY, "memory is given back");
    (end, got)
}

pub(crate) fn replies(mut got: &[u8]) -> Vec<&[u8]> {
    let mut out = Vec::new();
    while let Some((length, rest)) = got.split_first_chunk::<8>() {
        let (payload, rest) = rest.split_at(u64::from_le_bytes(*length) as usize);
        out.push(payload);
        got = rest;
    }
    out
}

/// Returns a conversation: allocation, data, one graph twice, reads and frees.
pub(crate) fn conversation(version: Version) -> Vec<Vec<u8>> {
    let x = Wire::new(1, [8, 2, 1, 1], 0, "x");
    let y = Wire::new(2, [8, 2, 1, 1], 128, "y");
    let z = Wire::new(3, [8, 2, 1, 1], 256, "z").op(2, &[1, 2]);
    let data: Vec<u8> = (0..64).collect();
    let n = |n: u64| n.to_le_bytes();
    let mut out = vec![
        message(14, &[&[0; 24]]),
        message(15, &[]),
        message(11, &[&[0; 4]]),
        message(1, &[&[0; 4]]),
        message(2, &[&[0; 4]]),
        message(0, &[&[0; 4], &n(4096)]),
        message(3, &[&n(BASE)]),
        message(5, &[&n(BASE), &[7]]),
        message(12, &[&x.bytes()]),
        message(
            13,
            &[&[0; 4], &z.bytes(), &x.bytes(), &y.bytes(), &[0; 8 * 296]],
        ),
        message(6, &[&x.bytes(), &[0], &n(0), &data]),
        message(7, &[&y.bytes(), &n(0), &n(5)]),
        message(17, &[&y.bytes(), &n(4), &n(8), &[9]]),
        message(9, &[&x.bytes(), &y.bytes()]),
        compute(version, &[3], &[x.clone(), y.clone(), z.clone()]),
        recompute(version),
        message(8, &[&y.bytes(), &n(8), &n(16)]),
        message(8, &[&z.bytes(), &n(0), &n(64)]),
    ];
    if version == Version::V8 {
        // Columns 1 and 2 of both rows.
        let columns = [n(4), n(8), n(2), n(32)].concat();
        out.push(message(18, &[&y.bytes(), &columns, &[1; 16]]));
        out.push(message(19, &[&y.bytes(), &columns]));
        out.push(message(20, &[&[0; 80]]));
    }
    out.push(message(4, &[&n(BASE)]));
    out
}
