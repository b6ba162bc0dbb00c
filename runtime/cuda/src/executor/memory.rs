use std::ops::Range;

use tpc_ir::program::{ArenaKind, Program};
use tpc_ir::{Arena, Buffer, Launch, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::ranks::{RankError, Share};

use super::place::device;
use crate::driver::{Driver, DriverError, Endpoint, Memory, Side};

#[expect(
    clippy::needless_pass_by_value,
    reason = "`map_err` passes the error by value"
)]
/// Returns a driver error as an error of execution.
pub fn error(e: DriverError) -> ExecError {
    if let DriverError::Host { cause, .. } = &e {
        if let Some(tpc_cpu::KernelError::Index { what, index, bound }) = cause.downcast_ref() {
            return ExecError::Index {
                what,
                index: *index,
                bound: *bound,
            };
        }
        if let Some(failed) = cause.downcast_ref::<RankError>() {
            return ExecError::from(failed.clone());
        }
    }
    ExecError::Device {
        code: e.code(),
        what: e.to_string(),
    }
}

/// The memory of the arenas.
#[derive(Debug, Default)]
pub(super) struct Arenas {
    memories: Vec<Memory>,
    /// The offset of the first allocated byte of each arena.
    starts: Vec<u64>,
}

impl Arenas {
    /// Allocates all arenas. A rank allocates only the bytes that it uses. On failure, earlier allocations are freed.
    pub(super) fn new(
        (program, share): (&Program, Option<&Share>),
        driver: &mut impl Driver,
    ) -> Result<Arenas, ExecError> {
        let mut out = Arenas::default();
        for number in 0..program.arenas.len() {
            let Some(used) = used_range((program, share), Arena::new(number)) else {
                out.starts.push(0);
                out.memories.push(Memory {
                    side: Side::Host,
                    address: 0,
                    bytes: 0,
                });
                continue;
            };
            // An empty arena also needs an address.
            let bytes = (used.end - used.start).max(1);
            let memory = match device(program.arenas[number].place)? {
                Some(device) => driver.allocate(device, bytes),
                None => driver.allocate_host(bytes),
            };
            match memory {
                Ok(memory) => {
                    out.starts.push(used.start);
                    out.memories.push(memory);
                }
                Err(e) => {
                    for memory in out.memories {
                        driver.free(memory).map_err(error)?;
                    }
                    return Err(error(e));
                }
            }
        }
        Ok(out)
    }

    pub(super) fn memories(&self) -> &[Memory] {
        &self.memories
    }

    /// Returns the address of an arena's first byte, which a rank may not use.
    pub(super) fn address(&self, arena: Arena) -> u64 {
        self.endpoint(arena.index(), 0).address
    }

    /// Returns the address of a weight, which is the same in every batch shape.
    pub(super) fn of_weight(&self, program: &Program, weight: Value) -> u64 {
        program.home(weight).map_or(0, |home| {
            let buffer = program.buffer(home.buffer);
            self.address(buffer.arena) + buffer.extent(0).offset
        })
    }

    pub(super) fn endpoint(&self, arena: usize, offset: u64) -> Endpoint {
        let memory = &self.memories[arena];
        let first = memory.address.wrapping_sub(self.starts[arena]);
        Endpoint {
            side: memory.side,
            address: first.wrapping_add(offset),
        }
    }

    pub(super) fn side_of(&self, program: &Program, value: Value) -> Side {
        let arena = program.home(value).map(|h| program.buffer(h.buffer).arena);
        arena.map_or(Side::Host, |arena| self.memories[arena.index()].side)
    }

    pub(super) fn clear_states(
        &mut self,
        program: &Program,
        driver: &mut impl Driver,
    ) -> Result<(), ExecError> {
        const PIECE: u64 = 1 << 24;
        for (memory, arena) in self.memories.iter().zip(&program.arenas) {
            if arena.kind != ArenaKind::States || memory.bytes == 0 {
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

/// Returns the bytes of an arena that a rank uses; `None` for arenas of other ranks.
fn used_range((program, share): (&Program, Option<&Share>), number: Arena) -> Option<Range<u64>> {
    let arena = program.arena(number);
    let all = Some(0..arena.bytes);
    let Some(share) = share else {
        return all;
    };
    if !share.has(arena.place) {
        return None;
    }
    match (arena.place, arena.kind) {
        // The first rank keeps the host's states and weights. Others need only the weights of ops that they repeat.
        (Place::Host, ArenaKind::States) if share.rank() > 0 => None,
        (Place::Host, ArenaKind::Weights) if share.rank() > 0 => {
            let buffers = (0..program.buffers.len()).map(Buffer::new);
            let own = buffers.filter(|b| program.buffer(*b).arena == number);
            let used = own.filter(|b| share.uses(program, *b));
            let extents = used.flat_map(|b| program.buffer(b).extents.iter());
            let ranges = extents.map(|e| e.offset..e.end());
            ranges.reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
        }
        _ => all,
    }
}

/// The fault record of each device, with the first index out of range in a launch. The records are in host memory that
/// the devices write, so reading them needs no copy.
#[derive(Debug)]
pub(super) struct Faults(Vec<Memory>);

impl Faults {
    /// The bytes of a flag, the launch, the index and the bound.
    pub(super) const BYTES: usize = 24;

    pub(super) fn new(program: &Program, driver: &mut impl Driver) -> Result<Faults, ExecError> {
        let mut out = Faults(Vec::new());
        for d in 0..program.graph.devices.len() {
            let memory = driver.allocate_host(Self::BYTES as u64);
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
