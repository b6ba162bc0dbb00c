//! Copies of a launch's operands, before the launch.

use tpc_ir::program::Program;
use tpc_ir::{RANK, Value};

use super::device_view::DeviceView;
use super::frames::Frames;
use super::launches::{KernelRun, Launches, ScratchPart};
use super::memory::Arenas;
use super::roles::format_of;
use crate::driver::{Device, Driver, DriverError, Endpoint, Memory, Side};
use crate::dump::{DumpMemory, MAX_SAVED, MAX_SAVED_EACH, RegionRecord, Role, TensorRecord};
use crate::kernels::{Halves, Kernel, Terms};
use crate::planes::Planes;

/// The alignment of regions: replay gives each address the same remainder.
const ALIGNMENT: u64 = 256;

/// The tensors of a launch, with their bytes.
#[derive(Debug, Default)]
pub(super) struct Snapshot {
    pub(super) tensors: Vec<TensorRecord>,
    pub(super) regions: Vec<RegionRecord>,
    pub(super) data: Vec<u8>,
}

/// The memory of the executor.
#[derive(Clone, Copy)]
pub(super) struct ExecutorMemory<'a> {
    pub(super) program: &'a Program,
    pub(super) launches: &'a Launches,
    pub(super) arenas: &'a Arenas,
    pub(super) frames: &'a Frames,
}

/// A range of addresses that a view uses.
#[derive(Clone, Copy)]
struct Span {
    memory: Memory,
    start: u64,
    end: u64,
    /// False if the kernel does not read the bytes.
    saved: bool,
}

/// A view as the frame in device memory has it.
struct FrameView {
    address: u64,
    dims: [u64; RANK],
    strides: [u64; RANK],
}

impl FrameView {
    fn decode(bytes: &[u8]) -> FrameView {
        let (words, _) = bytes.as_chunks::<4>();
        let half = |i: usize| u64::from(words.get(i).map_or(0, |w| u32::from_ne_bytes(*w)));
        let (longs, _) = bytes.as_chunks::<8>();
        let long = |i: usize| longs.get(i).map_or(0, |w| u64::from_ne_bytes(*w));
        FrameView {
            address: long(0),
            dims: [2, 3, 4, 5].map(half),
            strides: [3, 4, 5, 6].map(long),
        }
    }

    /// Returns the bytes from the first unit to the end of the last, for units of axis 0.
    fn reach(&self, (units, unit): (u64, u64)) -> u64 {
        let counts = [units, self.dims[1], self.dims[2], self.dims[3]];
        if counts.contains(&0) {
            return 0;
        }
        let ends = counts.iter().zip(self.strides);
        let ends = ends.map(|(n, stride)| (n - 1).saturating_mul(stride));
        ends.fold(unit, u64::saturating_add)
    }
}

impl ExecutorMemory<'_> {
    /// Reads the views of a kernel and the memory that they use.
    pub(super) fn snapshot(
        self,
        device: usize,
        (run, kernel): (&KernelRun, &Kernel),
        driver: &mut impl Driver,
    ) -> Result<Snapshot, DriverError> {
        let own = Side::Device(Device(device as u32));
        let mut frame = vec![0; run.slots.len() * DeviceView::BYTES];
        let address = self.frames.slot(device, run.slots.start);
        driver.read(Endpoint { side: own, address }, &mut frame)?;
        let mut out = Snapshot::default();
        let mut spans = Vec::new();
        for (i, bytes) in frame.chunks_exact(DeviceView::BYTES).enumerate() {
            let view = FrameView::decode(bytes);
            let role = self.role(run, i);
            let tensor = self.tensor(role, run.slots.start + i, &view, kernel);
            let span = self.span(view.address, tensor.bytes);
            spans.push(span.map(|span| Span {
                saved: role != Role::Scratch,
                ..span
            }));
            out.tensors.push(TensorRecord {
                offset: view.address,
                ..tensor
            });
        }
        let regions = merged(spans.iter().flatten().copied());
        for (tensor, span) in out.tensors.iter_mut().zip(&spans) {
            let holds = |r: &Span| span.is_some_and(|s| r.start <= s.start && s.end <= r.end);
            let region = regions.iter().position(holds);
            let start = region.map_or(tensor.offset, |r| regions[r].start);
            tensor.offset -= start;
            tensor.region = region.map(|r| r as u32);
        }
        out.save(&regions, own, driver)?;
        Ok(out)
    }

    fn role(self, run: &KernelRun, i: usize) -> Role {
        let slot = run.slots.start + i;
        if i < run.operands {
            return Role::Operand;
        }
        if i < run.operands + run.results {
            return Role::Result;
        }
        if self.launches.halves.contains(&slot) {
            return Role::Operand;
        }
        match self.launches.scratch.get(&slot) {
            Some(ScratchPart::Counters) => Role::Counters,
            Some(ScratchPart::Parts) => Role::Scratch,
            None => Role::Size,
        }
    }

    fn tensor(self, role: Role, slot: usize, view: &FrameView, kernel: &Kernel) -> TensorRecord {
        let value = self.launches.slots[slot];
        let data = self.program.graph.value(value);
        let (dtype, k) = (data.ty.dtype, view.dims[0]);
        let is_terms = self.launches.terms.contains_key(&slot);
        let is_staged = self.launches.staged.contains_key(&slot);
        let is_halves = self.launches.halves.contains(&slot);
        let is_own = !is_terms && !is_halves && !is_staged;
        let in_planes = format_of(self.program, value) == Planes::FORMAT && is_own;
        let (storage, bytes) = match role {
            Role::Size => ("file", 0),
            Role::Counters => ("file", kernel.scratch.counters),
            Role::Scratch => ("file", kernel.scratch.parts),
            Role::Operand | Role::Result if is_terms => (
                "terms",
                view.reach((1, Terms::of(k as usize).column as u64)),
            ),
            Role::Operand | Role::Result if is_halves => (
                "halves",
                view.reach((1, Halves::of(k as usize).column as u64)),
            ),
            Role::Operand | Role::Result if in_planes => {
                ("planes", self.end(value).saturating_sub(view.address))
            }
            Role::Operand | Role::Result => {
                let blocks = k.div_ceil(dtype.block_len());
                ("file", view.reach((blocks, dtype.block_bytes())))
            }
        };
        TensorRecord {
            role,
            name: data.name.to_string(),
            value: value.to_string(),
            dtype: dtype.to_string(),
            storage: storage.to_owned(),
            dims: view.dims,
            strides: view.strides,
            region: None,
            offset: 0,
            bytes,
        }
    }

    /// Returns the address after the buffer of a value.
    fn end(self, value: Value) -> u64 {
        self.program.home(value).map_or(0, |home| {
            let buffer = self.program.buffer(home.buffer);
            let extent = buffer.extent(0);
            self.arenas.address(buffer.arena) + extent.offset + extent.bytes
        })
    }

    /// Returns the aligned range of a view; `None` for an empty view.
    fn span(self, address: u64, bytes: u64) -> Option<Span> {
        let end = address.checked_add(bytes).filter(|_| bytes > 0)?;
        let mut all = self.arenas.memories().iter().chain(self.frames.memories());
        let holds = |m: &&Memory| address >= m.address && end <= m.address + m.bytes;
        let memory = *all.find(holds)?;
        Some(Span {
            memory,
            start: address / ALIGNMENT * ALIGNMENT,
            end: end
                .next_multiple_of(ALIGNMENT)
                .min(memory.address + memory.bytes),
            saved: true,
        })
    }
}

/// Joins ranges that overlap.
fn merged(spans: impl Iterator<Item = Span>) -> Vec<Span> {
    let mut spans: Vec<Span> = spans.collect();
    spans.sort_by_key(|s| s.start);
    let mut out: Vec<Span> = Vec::new();
    for span in spans {
        match out.last_mut() {
            Some(last) if span.memory == last.memory && span.start < last.end => {
                last.end = last.end.max(span.end);
                last.saved |= span.saved;
            }
            _ => out.push(span),
        }
    }
    out
}

impl Snapshot {
    /// Reads the bytes of the regions: small regions whole, large ones from their start.
    fn save(
        &mut self,
        regions: &[Span],
        own: Side,
        driver: &mut impl Driver,
    ) -> Result<(), DriverError> {
        self.regions = regions.iter().map(|r| record(r, own)).collect();
        let mut order: Vec<usize> = (0..regions.len()).collect();
        order.sort_by_key(|r| self.regions[*r].bytes);
        let mut left = MAX_SAVED;
        for r in order.into_iter().filter(|r| regions[*r].saved) {
            let region = &mut self.regions[r];
            region.saved = region.bytes.min(MAX_SAVED_EACH).min(left);
            left -= region.saved;
        }
        let all: u64 = self.regions.iter().map(|r| r.saved).sum();
        self.data = vec![0; all as usize];
        let mut to = self.data.as_mut_slice();
        for (span, region) in regions.iter().zip(&self.regions) {
            let (bytes, rest) = to.split_at_mut(region.saved as usize);
            let from = Endpoint {
                side: span.memory.side,
                address: span.start,
            };
            driver.read(from, bytes)?;
            to = rest;
        }
        Ok(())
    }
}

fn record(span: &Span, own: Side) -> RegionRecord {
    RegionRecord {
        memory: match span.memory.side {
            Side::Host => DumpMemory::Host,
            side if side == own => DumpMemory::Device,
            Side::Device(_) => DumpMemory::Peer,
        },
        bytes: span.end - span.start,
        saved: 0,
    }
}
