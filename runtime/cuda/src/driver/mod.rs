//! Drivers: devices with memory, modules of kernels, and graphs of launches.
//!
//! A graph has explicit nodes and edges. It is built once per batch shape and launched repeatedly. Only the edges order the nodes: two
//! nodes without a path between them may run concurrently or in any order.

mod cache_dir;
mod device_map;
mod error;
mod fault;
mod graph;
mod module;
#[expect(unsafe_code, reason = "it calls the driver's C library")]
pub mod real;

use std::fmt;

pub use cache_dir::cache_dir;
pub use device_map::DeviceMap;
pub use error::{DriverError, HostError};
pub use fault::{Fault, FaultKind};
pub use graph::{
    Args, CopyNode, Edge, EdgeKind, Endpoint, GraphSpec, HostWork, KernelNode, Node, SetNode, Side,
    Work,
};
pub use module::{Cubin, Module};

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}

handle!(
    /// A device, given by its index in [`Driver::devices`].
    Device, "cuda:"
);
handle!(
    /// A module that is loaded on a device.
    ModuleHandle, "module"
);
handle!(
    /// A kernel of a loaded module.
    Function, "function"
);
handle!(
    /// A graph that is ready to launch.
    Graph, "graph"
);

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name that the driver reports.
    pub name: String,
    /// The number of the card. Devices with the same number share its memory.
    pub card: u32,
    /// The compute capability: major and minor.
    pub capability: (u32, u32),
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The bytes of its memory.
    pub memory: u64,
    /// The maximum bytes of shared memory per block.
    pub shared_per_block: u32,
}

/// A memory range that a driver allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The owner of the memory.
    pub side: Side,
    /// The address of the first byte, a multiple of 256. Kernels of every device use the same address; for [host memory](Side::Host) the
    /// host does as well.
    pub address: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Memory {
    /// Returns the host pointer, or null for device memory. The pointer is valid until [`Driver::free`].
    pub fn host_pointer(&self) -> *mut u8 {
        match self.side {
            Side::Host => self.address as *mut u8,
            Side::Device(_) => std::ptr::null_mut(),
        }
    }
}

/// A driver of devices that run graphs of kernels.
///
/// All calls except [`launch`](Driver::launch) are synchronous.
pub trait Driver: Send {
    /// Returns the devices.
    fn devices(&self) -> &[DeviceInfo];

    /// Returns the bytes of a device's memory that are free.
    ///
    /// # Errors
    /// Returns an error if the device does not exist or has failed.
    fn free_memory(&self, device: Device) -> Result<u64, DriverError>;

    /// Loads a module on a device.
    ///
    /// # Errors
    /// Returns an error if the module has no code for the device and its source cannot be compiled.
    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError>;

    /// Returns the kernel with this name of a loaded module.
    ///
    /// # Errors
    /// Returns an error if the module does not have the kernel.
    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError>;

    /// Allocates device memory. Its content is undefined.
    ///
    /// # Errors
    /// Returns an error if the free memory does not suffice.
    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError>;

    /// Allocates host memory that all devices and the host can access. It is zeroed.
    ///
    /// # Errors
    /// Returns an error if the free memory does not suffice.
    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError>;

    /// Frees memory. Graphs that use it must not run again.
    ///
    /// # Errors
    /// Returns an error if this driver did not allocate the memory, or it was freed before.
    fn free(&mut self, memory: Memory) -> Result<(), DriverError>;

    /// Lets the kernels of one device access the memory of another, including future allocations.
    ///
    /// # Errors
    /// Returns [`DriverError::NoPeerAccess`] if the devices cannot access each other's memory.
    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError>;

    /// Writes bytes of the host to any memory.
    ///
    /// # Errors
    /// Returns an error if the range is not within memory of this driver.
    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError>;

    /// Reads bytes from any memory.
    ///
    /// # Errors
    /// Returns an error if the range is not within memory of this driver.
    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError>;

    /// Prepares a graph for launches.
    ///
    /// # Errors
    /// Returns an error if [`GraphSpec::order`] fails, a launch exceeds a limit of the device, or its arguments do not fit the kernel.
    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError>;

    /// Destroys a graph and its host work.
    ///
    /// # Errors
    /// Returns an error if the graph does not exist.
    fn discard(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Starts a graph. Graphs run one after another.
    ///
    /// # Errors
    /// Returns an error if the graph cannot start. [`Driver::synchronize`] returns errors that occur while it runs.
    fn launch(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Waits until all launched graphs have ended.
    ///
    /// # Errors
    /// Returns the first error of the graphs. The results of the graphs are then undefined.
    fn synchronize(&mut self) -> Result<(), DriverError>;
}
