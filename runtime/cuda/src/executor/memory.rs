use tpc_ir::program::{ArenaKind, Program};
use tpc_ir::{Arena, Launch, Value};
use tpc_runtime::ExecError;

use super::place::device;
use crate::driver::{Driver, DriverError, Endpoint, Memory, Side};

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
