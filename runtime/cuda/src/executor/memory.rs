use tpc_cpu::View as HostView;
use tpc_ir::program::{ArenaKind, BatchLayout, Program};
use tpc_ir::{Arena, Bindings, DType, Launch, RANK, Value};
use tpc_runtime::ExecError;

use super::launches::{Launches, ScratchPart};
use super::place::device;
use super::task::StagingPart;
use crate::driver::{Device, Driver, DriverError, Endpoint, Memory, Side};
use crate::kernels::{Halves, Scratch, Terms};

/// A view as kernels read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceView {
    pub(super) address: u64,
    pub(super) dtype: DType,
    at: BatchLayout,
}

impl DeviceView {
    /// An address, four 32-bit sizes, and four 64-bit strides.
    pub(super) const BYTES: usize = 8 + RANK * 4 + RANK * 8;

    pub(super) fn none(dtype: DType) -> DeviceView {
        DeviceView {
            address: 0,
            dtype,
            at: BatchLayout::default(),
        }
    }

    fn empty_at(self, address: u64) -> DeviceView {
        DeviceView {
            address,
            ..DeviceView::none(self.dtype)
        }
    }

    pub(super) fn new(arena: u64, dtype: DType, at: &BatchLayout) -> DeviceView {
        DeviceView {
            address: arena + at.offset,
            dtype,
            at: *at,
        }
    }

    pub(super) fn on_host(&self) -> HostView {
        let at = BatchLayout {
            offset: 0,
            ..self.at
        };
        HostView::located(self.address as *mut u8, self.dtype, &at)
    }

    fn dense(&self, address: u64) -> DeviceView {
        let [n, n1, n2, _] = self.at.dims;
        let row = self.dtype.bytes(n).unwrap_or(0);
        let strides = [self.dtype.block_bytes(), row, row * n1, row * n1 * n2];
        DeviceView {
            address,
            at: BatchLayout { strides, ..self.at },
            ..*self
        }
    }

    /// Returns a view of the int8 terms of these elements at another address.
    fn terms(&self, address: u64) -> DeviceView {
        self.columns(address, 4, Terms::of(self.at.dims[0] as usize).column)
    }

    /// Returns a view of these elements as f16 at another address.
    fn halves(&self, address: u64) -> DeviceView {
        self.columns(address, 2, Halves::of(self.at.dims[0] as usize).column)
    }

    fn columns(&self, address: u64, element: u64, column: usize) -> DeviceView {
        let ([_, n1, n2, _], column) = (self.at.dims, column as u64);
        let strides = [element, column, column * n1, column * n1 * n2];
        DeviceView {
            address,
            at: BatchLayout { strides, ..self.at },
            ..*self
        }
    }

    pub(super) fn sizes(&self) -> [usize; RANK] {
        self.at.dims.map(|n| n as usize)
    }

    pub(super) fn dense_bytes(&self) -> usize {
        let [n, rest @ ..] = self.sizes();
        let row = self.dtype.bytes(n as u64).unwrap_or(0) as usize;
        row * rest.iter().product::<usize>()
    }

    /// Returns the bytes from the first element to the end of the last.
    pub(super) fn reach(&self) -> usize {
        let sizes = self.sizes();
        if sizes.contains(&0) {
            return 0;
        }
        let blocks = sizes[0].div_ceil(self.dtype.block_len() as usize);
        let counts = [blocks, sizes[1], sizes[2], sizes[3]];
        let ends = counts.iter().zip(self.at.strides);
        let last: usize = ends.map(|(n, stride)| (n - 1) * stride as usize).sum();
        last + self.dtype.block_bytes() as usize
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) -> Result<(), ExecError> {
        out.extend(self.address.to_ne_bytes());
        for n in self.at.dims {
            let n = u32::try_from(n).map_err(|_| ExecError::Size {
                what: format!("{n} of a view (above 32 bits)"),
            })?;
            out.extend(n.to_ne_bytes());
        }
        self.at
            .strides
            .iter()
            .for_each(|b| out.extend(b.to_ne_bytes()));
        Ok(())
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the error by value"
)]
/// Returns a driver error as an error of execution.
pub fn error(e: DriverError) -> ExecError {
    if let DriverError::Host { cause, .. } = &e
        && let Some(tpc_cpu::KernelError::Index { what, index, bound }) = cause.downcast_ref()
    {
        return ExecError::Index {
            what,
            index: *index,
            bound: *bound,
        };
    }
    ExecError::Device {
        code: e.code(),
        what: e.to_string(),
    }
}

#[derive(Debug)]
pub(super) struct Arenas(Vec<Memory>);

impl Arenas {
    /// Allocates every arena. On failure, earlier allocations are freed.
    pub(super) fn new(program: &Program, driver: &mut impl Driver) -> Result<Arenas, ExecError> {
        let mut out = Arenas(Vec::new());
        for arena in &program.arenas {
            // An empty arena also needs an address.
            let bytes = arena.bytes.max(1);
            let memory = match device(arena.place)? {
                Some(device) => driver.allocate(device, bytes),
                None => driver.allocate_host(bytes),
            };
            match memory {
                Ok(memory) => out.0.push(memory),
                Err(e) => {
                    for memory in out.0 {
                        driver.free(memory).map_err(error)?;
                    }
                    return Err(error(e));
                }
            }
        }
        Ok(out)
    }

    pub(super) fn memories(&self) -> &[Memory] {
        &self.0
    }

    pub(super) fn address(&self, arena: Arena) -> u64 {
        self.0[arena.index()].address
    }

    /// Returns the address of a weight, which is the same in every batch shape.
    pub(super) fn of_weight(&self, program: &Program, weight: Value) -> u64 {
        program.home(weight).map_or(0, |home| {
            let buffer = program.buffer(home.buffer);
            self.address(buffer.arena) + buffer.extent(0).offset
        })
    }

    pub(super) fn endpoint(&self, arena: usize, offset: u64) -> Endpoint {
        let memory = &self.0[arena];
        Endpoint {
            side: memory.side,
            address: memory.address + offset,
        }
    }

    pub(super) fn side_of(&self, program: &Program, value: Value) -> Side {
        let arena = program.home(value).map(|h| program.buffer(h.buffer).arena);
        arena.map_or(Side::Host, |arena| self.0[arena.index()].side)
    }

    pub(super) fn clear_states(
        &mut self,
        program: &Program,
        driver: &mut impl Driver,
    ) -> Result<(), ExecError> {
        const PIECE: u64 = 1 << 24;
        for (memory, arena) in self.0.iter().zip(&program.arenas) {
            if arena.kind != ArenaKind::States {
                continue;
            }
            let zeros = vec![0; arena.bytes.min(PIECE) as usize];
            let mut at = 0;
            while at < arena.bytes {
                let n = (arena.bytes - at).min(PIECE);
                let to = Endpoint {
                    side: memory.side,
                    address: memory.address + at,
                };
                driver.write(to, &zeros[..n as usize]).map_err(error)?;
                at += n;
            }
        }
        Ok(())
    }
}

/// The frame of each device: views, quantised activations, scratch memory, staging buffers.
#[derive(Debug)]
pub(super) struct Frames {
    devices: Vec<Memory>,
    terms: Vec<Memory>,
    /// Activations as f16.
    halves: Vec<Memory>,
    /// Counters, then partial results.
    scratch: Vec<Memory>,
    staging: Vec<Memory>,
}

impl Frames {
    pub(super) fn new(launches: &Launches, driver: &mut impl Driver) -> Result<Frames, ExecError> {
        let memory = |(d, slots): (usize, &std::ops::Range<usize>)| {
            let bytes = (slots.len().max(1) * DeviceView::BYTES) as u64;
            driver.allocate(Device(d as u32), bytes).map_err(error)
        };
        let devices: Result<Vec<Memory>, ExecError> =
            launches.of_device.iter().enumerate().map(memory).collect();
        let devices = devices?;
        let terms = launches.terms_bytes.iter().enumerate().map(|(d, bytes)| {
            let memory = driver.allocate(Device(d as u32), (2 * *bytes).max(2));
            memory.map_err(error)
        });
        let terms: Result<Vec<Memory>, ExecError> = terms.collect();
        let terms = terms?;
        let halves = launches.halves_bytes.iter().enumerate().map(|(d, bytes)| {
            let memory = driver.allocate(Device(d as u32), (*bytes).max(1));
            memory.map_err(error)
        });
        let halves: Result<Vec<Memory>, ExecError> = halves.collect();
        let halves = halves?;
        let scratch = launches
            .scratch_bytes
            .iter()
            .enumerate()
            .map(|(d, bytes)| scratch(Device(d as u32), *bytes, driver));
        let scratch: Result<Vec<Memory>, ExecError> = scratch.collect();
        let scratch = scratch?;
        let staging = launches.staging.iter().map(|staging| {
            let bytes = (staging.parts * staging.bytes).max(1) as u64;
            driver.allocate_host(bytes).map_err(error)
        });
        let staging: Result<Vec<Memory>, ExecError> = staging.collect();
        Ok(Frames {
            devices,
            terms,
            halves,
            scratch,
            staging: staging?,
        })
    }

    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        let more = self.scratch.iter().chain(&self.staging);
        self.terms.iter().chain(&self.halves).chain(more)
    }

    pub(super) fn slot(&self, launches: &Launches, device: usize, slot: usize) -> u64 {
        let at = slot - launches.of_device[device].start;
        self.devices[device].address + (at * DeviceView::BYTES) as u64
    }

    pub(super) fn write(
        &self,
        launches: &Launches,
        slots: &[DeviceView],
        sizes: &Bindings,
        driver: &mut impl Driver,
    ) -> Result<(), ExecError> {
        for (d, range) in launches.of_device.iter().enumerate() {
            let (memory, terms, scratch) = (&self.devices[d], &self.terms[d], &self.scratch[d]);
            let mut bytes = Vec::with_capacity(range.len() * DeviceView::BYTES);
            for slot in range.clone() {
                let mut view = slots[slot];
                if let Some(size) = launches.sizes.get(&slot) {
                    let size = size.eval(sizes).ok_or_else(|| ExecError::Size {
                        what: size.to_string(),
                    })?;
                    view = DeviceView::none(view.dtype);
                    view.at.dims[0] = size;
                }
                if let Some(StagingPart { buffer, part }) = launches.staged.get(&slot) {
                    let bytes = part * launches.staging[*buffer].bytes;
                    view = view.dense(self.staging[*buffer].address + bytes as u64);
                }
                if let Some(term_slot) = launches.terms.get(&slot) {
                    view = view.terms(terms.address + term_slot.number() * (terms.bytes / 2));
                }
                if launches.halves.contains(&slot) {
                    view = view.halves(self.halves[d].address);
                }
                if let Some(part) = launches.scratch.get(&slot) {
                    let behind = match part {
                        ScratchPart::Counters => 0,
                        ScratchPart::Parts => counters(launches.scratch_bytes[d]),
                    };
                    view = view.empty_at(scratch.address + behind);
                }
                view.encode(&mut bytes)?;
            }
            let to = Endpoint {
                side: memory.side,
                address: memory.address,
            };
            driver.write(to, &bytes).map_err(error)?;
        }
        Ok(())
    }
}

fn counters(scratch: Scratch) -> u64 {
    scratch.counters.next_multiple_of(256)
}

pub(super) fn scratch_bytes(scratch: Scratch) -> u64 {
    counters(scratch).saturating_add(scratch.parts)
}

fn scratch(device: Device, of: Scratch, driver: &mut impl Driver) -> Result<Memory, ExecError> {
    let memory = driver.allocate(device, scratch_bytes(of).max(1));
    let memory = memory.map_err(error)?;
    let to = Endpoint {
        side: memory.side,
        address: memory.address,
    };
    let zeros = vec![0; counters(of) as usize];
    driver.write(to, &zeros).map_err(error)?;
    Ok(memory)
}

/// The fault record of each device, with the first index out of range in a launch.
#[derive(Debug)]
pub(super) struct Faults(Vec<Memory>);

impl Faults {
    /// The bytes of a flag, the launch, the index and the bound.
    pub(super) const BYTES: usize = 24;

    pub(super) fn new(program: &Program, driver: &mut impl Driver) -> Result<Faults, ExecError> {
        let mut out = Faults(Vec::new());
        for d in 0..program.graph.devices.len() {
            let memory = driver.allocate(Device(d as u32), Self::BYTES as u64);
            out.0.push(memory.map_err(error)?);
            out.clear(d, driver)?;
        }
        Ok(out)
    }

    pub(super) fn address(&self, device: usize) -> u64 {
        self.0[device].address
    }

    fn endpoint(&self, device: usize) -> Endpoint {
        Endpoint {
            side: self.0[device].side,
            address: self.0[device].address,
        }
    }

    /// Returns the index out of range that a kernel of a device has reported, and clears the record.
    pub(super) fn take(
        &self,
        device: usize,
        driver: &mut impl Driver,
    ) -> Result<Option<IndexFault>, ExecError> {
        let mut bytes = [0; Self::BYTES];
        let read = driver.read(self.endpoint(device), &mut bytes);
        read.map_err(error)?;
        let (words, _) = bytes.as_chunks::<8>();
        let [head, index, bound] = [0, 1, 2].map(|i| u64::from_ne_bytes(words[i]));
        if head as u32 == 0 {
            return Ok(None);
        }
        self.clear(device, driver)?;
        Ok(Some(IndexFault {
            launch: Launch::new((head >> 32) as usize),
            index: index.cast_signed(),
            bound: bound as usize,
        }))
    }

    /// Returns the number of devices.
    pub(super) fn devices(&self) -> usize {
        self.0.len()
    }

    fn clear(&self, device: usize, driver: &mut impl Driver) -> Result<(), ExecError> {
        let to = self.endpoint(device);
        driver.write(to, &[0; Self::BYTES]).map_err(error)
    }
}

/// An index out of range that a kernel has reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexFault {
    pub(super) launch: Launch,
    index: i64,
    bound: usize,
}

impl IndexFault {
    pub(super) fn error(&self, program: &Program) -> ExecError {
        ExecError::Index {
            what: index_name(&program.launch(self.launch).kernel),
            index: self.index,
            bound: self.bound,
        }
    }
}

fn index_name(kernel: &str) -> &'static str {
    match kernel {
        "get_rows" => "row",
        _ if kernel.ends_with("set_rows") => "slice to set",
        "ssm_scan" => "cell of a state",
        _ => "expert",
    }
}
