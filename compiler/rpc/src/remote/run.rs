//! One run of a graph on a server.

use std::collections::BTreeMap;
use std::io::Read;

use tpc_ggml::capture::Record;

use super::wire::{WireTensor, id};
use super::{Remote, RemoteError};
use crate::protocol::Command;
use crate::version::Version;

/// Rows of quantised tensors that are not a multiple of this length need padding on some devices.
const PADDED_ROW: u64 = 512;

/// The place of a graph's tensors in a buffer of the server.
struct Placed {
    buffer: u64,
    /// The address of each record's memory owner.
    base: Vec<u64>,
}

impl Remote {
    /// Runs a graph. Records that own memory have their content in `leaves`; other owners start with zeros. Returns
    /// the memory of the owner of record `wanted` after the run.
    ///
    /// # Errors
    /// Returns an error if the protocol cannot express the graph, or if the server does not compute it.
    pub fn run(
        &mut self,
        graph: &[Record],
        leaves: &BTreeMap<usize, Vec<u8>>,
        wanted: usize,
    ) -> Result<Vec<u8>, RemoteError> {
        let placed = self.place(graph)?;
        let out = self.run_in(graph, leaves, wanted, &placed);
        self.send(Command::FreeBuffer, &[&placed.buffer.to_le_bytes()])?;
        out
    }

    fn place(&mut self, graph: &[Record]) -> Result<Placed, RemoteError> {
        let mut offset = vec![0; graph.len()];
        let mut end = 0_u64;
        for (position, record) in graph.iter().enumerate().filter(|(_, t)| !t.is_view) {
            let without_memory = WireTensor {
                record,
                position,
                buffer: 0,
                base: 0,
            };
            let bytes = self.allocation_of(&without_memory)?;
            offset[position] = end;
            let next = end.checked_add(bytes);
            let next = next.and_then(|n| n.checked_next_multiple_of(self.alignment));
            end = next.ok_or(RemoteError::Memory { bytes })?;
        }
        let (buffer, start) = self.allocate(end.max(self.alignment))?;
        // Some devices give addresses that are not aligned.
        let base = graph.iter().map(|t| start.saturating_add(offset[t.root]));
        Ok(Placed {
            buffer,
            base: base.collect(),
        })
    }

    fn run_in(
        &mut self,
        graph: &[Record],
        leaves: &BTreeMap<usize, Vec<u8>>,
        wanted: usize,
        placed: &Placed,
    ) -> Result<Vec<u8>, RemoteError> {
        let mut tensors = Vec::new();
        for (position, record) in graph.iter().enumerate() {
            let tensor = WireTensor {
                record,
                position,
                buffer: placed.buffer,
                base: placed.base[position],
            };
            tensors.push(tensor.bytes(self.version)?);
        }
        self.send(
            Command::BufferClear,
            &[&placed.buffer.to_le_bytes(), &[0_u8]],
        )?;
        for (&position, bytes) in leaves {
            let t = &graph[position];
            if t.dtype.block_len() > 1 && !t.ne()[0].is_multiple_of(PADDED_ROW) {
                self.send(Command::InitTensor, &[&tensors[position]])?;
            }
            let place = [&tensors[position][..], &[0], &[0; 8], bytes];
            self.send(Command::SetTensor, &place)?;
        }
        let message = compute(self.version, graph, &tensors);
        self.send(Command::GraphCompute, &[&message])?;
        self.read_tensor(&graph[graph[wanted].root], &tensors[graph[wanted].root])
    }

    fn read_tensor(&mut self, owner: &Record, tensor: &[u8]) -> Result<Vec<u8>, RemoteError> {
        let bytes = owner.elements() / owner.dtype.block_len() * owner.dtype.block_bytes();
        let part: [&[u8]; 3] = [tensor, &[0; 8], &bytes.to_le_bytes()];
        self.send(Command::GetTensor, &part)?;
        self.reply(bytes)?;
        // Memory grows as bytes arrive.
        let mut out = Vec::new();
        let read = (&mut self.stream).take(bytes).read_to_end(&mut out)?;
        match read as u64 == bytes {
            true => Ok(out),
            false => Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof).into()),
        }
    }
}

/// Returns the payload of GRAPH_COMPUTE. The server does not store the graph.
fn compute(version: Version, graph: &[Record], tensors: &[Vec<u8>]) -> Vec<u8> {
    let nodes: Vec<u64> = (0..graph.len())
        .filter(|&i| !graph[i].is_leaf())
        .map(id)
        .collect();
    let mut out = vec![0; 4];
    if version == Version::V8 {
        out.extend(0_u64.to_le_bytes());
    }
    out.extend((nodes.len() as u32).to_le_bytes());
    out.extend(nodes.iter().flat_map(|n| n.to_le_bytes()));
    out.extend((tensors.len() as u32).to_le_bytes());
    out.extend(tensors.iter().flatten());
    out
}
