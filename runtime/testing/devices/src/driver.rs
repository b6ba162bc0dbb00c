use std::time::Duration;

use tpc_cuda::{
    CudaDriver, Device, DeviceInfo, DeviceMap, Driver, DriverError, Endpoint, Function, Graph,
    GraphSpec, Memory, Module, ModuleHandle,
};
use tpc_cuda_emulator::{EmulatedDriver, EmulatedOptions};

use super::{cubins, named};

/// Allocations up to this size are filled with NaN on cards. Emulated devices fill all allocations.
const POISONED: u64 = 64 << 20;

/// The driver of a test: of emulated devices, or of cards.
pub enum TestDriver {
    /// Emulated devices.
    Emulated(Box<EmulatedDriver>),
    /// Cards.
    Card(Box<DeviceMap<CudaDriver>>),
}

macro_rules! either {
    ($driver:expr, $inner:ident => $call:expr) => {
        match $driver {
            TestDriver::Emulated($inner) => $call,
            TestDriver::Card($inner) => $call,
        }
    };
}

impl TestDriver {
    /// Opens the devices of a test: the cards that `TPC_TEST_DRIVER` names, or emulated devices with these options. If
    /// neither a card nor a C++ compiler exists, reports a skipped test.
    ///
    /// # Panics
    ///
    /// Panics if `TPC_TEST_DRIVER` is malformed or its cards cannot be opened, and if the options are unusable.
    pub fn new(options: EmulatedOptions) -> Option<TestDriver> {
        let list = std::env::var(named::VARIABLE).unwrap_or_default();
        let cards = named::cards(&list).unwrap_or_else(|e| panic!("{e}"));
        if cards.is_empty() {
            return match EmulatedDriver::new(options) {
                Err(e @ DriverError::NoCompiler { .. }) => {
                    tpc_op_cases::skip(e);
                    None
                }
                driver => {
                    let driver = driver.unwrap_or_else(|e| panic!("{e}"));
                    Some(TestDriver::Emulated(Box::new(driver)))
                }
            };
        }
        let used: Vec<u32> = cards
            .iter()
            .copied()
            .cycle()
            .take(options.devices)
            .collect();
        let driver = CudaDriver::new(&used, cubins::folder());
        let map = driver.and_then(|driver| DeviceMap::new(driver, &used));
        Some(TestDriver::Card(Box::new(
            map.unwrap_or_else(|e| panic!("{list}: {e}")),
        )))
    }

    /// True for cards. They neither check accesses nor count them.
    pub fn is_card(&self) -> bool {
        matches!(self, TestDriver::Card(_))
    }

    /// Returns the bytes of an allocation that checked kernels have read, counting repeated reads; `None` for cards.
    pub fn bytes_read(&self, memory: Memory) -> Option<u64> {
        match self {
            TestDriver::Emulated(driver) => Some(driver.bytes_read(memory)),
            TestDriver::Card(_) => None,
        }
    }
}

impl Driver for TestDriver {
    fn devices(&self) -> &[DeviceInfo] {
        either!(self, d => d.devices())
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        either!(self, d => d.free_memory(device))
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        if let TestDriver::Emulated(_) = self {
            cubins::store(module)?;
        }
        either!(self, d => d.load(device, module))
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        either!(self, d => d.function(module, name))
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        let memory = either!(self, d => d.allocate(device, bytes))?;
        if self.is_card() && bytes <= POISONED {
            let at = Endpoint {
                side: memory.side,
                address: memory.address,
            };
            self.write(at, &vec![0xff; bytes as usize])?;
        }
        Ok(memory)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        either!(self, d => d.allocate_host(bytes))
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        either!(self, d => d.free(memory))
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        either!(self, d => d.grant(reader, owner))
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        either!(self, d => d.write(to, bytes))
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        either!(self, d => d.read(from, bytes))
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        either!(self, d => d.instantiate(spec))
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        either!(self, d => d.instantiate_timed(spec))
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        either!(self, d => d.node_times(graph))
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        either!(self, d => d.discard(graph))
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        either!(self, d => d.launch(graph))
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        either!(self, d => d.synchronize())
    }
}
