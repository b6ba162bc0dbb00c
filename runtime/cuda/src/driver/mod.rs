//! Drivers: devices with memory, kernel modules, and graphs of launches.
//!
//! A graph is built once per batch shape and launched repeatedly. Only edges order its nodes: nodes without a path
//! between them may run concurrently or in any order.

mod cache_dir;
mod device_map;
mod error;
mod failure;
mod fault;
mod graph;
mod module;
#[expect(unsafe_code, reason = "it calls the driver's C library")]
pub mod real;
mod watched;

use std::fmt;
use std::time::Duration;

pub use cache_dir::cache_dir;
pub use device_map::DeviceMap;
pub use error::{DriverError, HostError, PeerFailure};
pub use failure::DeviceFailure;
pub use fault::{Fault, FaultKind};
pub use graph::{
    Args, CopyNode, Edge, EdgeKind, Endpoint, GraphSpec, HostWork, KernelNode, Node, SetNode, Side,
    Work,
};
pub use module::{Cubin, CudaVersion, Module};
pub use watched::WatchedDriver;

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
    /// A device: an index into [`Driver::devices`].
    Device, "cuda:"
);
handle!(
    /// A module loaded on a device.
    ModuleHandle, "module"
);
handle!(
    /// A kernel of a loaded module.
    Function, "function"
);
handle!(
    /// An instantiated graph.
    Graph, "graph"
);

/// The properties of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name of the device, as the driver reports it.
    pub name: String,
    /// The number of the card. Devices with the same number share its memory.
    pub card: u32,
    /// The compute capability: major and minor.
    pub capability: (u32, u32),
    /// The number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// The device memory in bytes.
    pub memory: u64,
    /// The maximum shared memory per block, in bytes.
    pub shared_per_block: u32,
}

/// Memory that a driver allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// The owner of the memory.
    pub side: Side,
    /// The address of the first byte, a multiple of 256. All devices use the same address; for [host
    /// memory](Side::Host), the host does too.
    pub address: u64,
    /// The size in bytes.
    pub bytes: u64,
}

impl Memory {
    /// Returns the host pointer, valid until [`Driver::free`]. The pointer is null for device memory.
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

    /// Returns a device's free memory in bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if the device does not exist or has failed.
    fn free_memory(&self, device: Device) -> Result<u64, DriverError>;

    /// Loads a module on a device.
    ///
    /// # Errors
    ///
    /// Returns an error if the module has no code for the device and its source does not compile.
    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError>;

    /// Returns a kernel of a loaded module.
    ///
    /// # Errors
    ///
    /// Returns an error if the module does not have the kernel.
    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError>;

    /// Allocates uninitialised device memory.
    ///
    /// # Errors
    ///
    /// Returns an error if memory is exhausted.
    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError>;

    /// Allocates zeroed host memory that all devices can access.
    ///
    /// # Errors
    ///
    /// Returns an error if memory is exhausted.
    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError>;

    /// Frees memory. Graphs that use it must not run again.
    ///
    /// # Errors
    ///
    /// Returns an error if this driver did not allocate the memory.
    fn free(&mut self, memory: Memory) -> Result<(), DriverError>;

    /// Allows kernels of `reader` to access the memory of `owner`, including later allocations.
    ///
    /// # Errors
    ///
    /// Returns [`DriverError::NoPeerAccess`] without a peer link, or if a test pattern arrives changed.
    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError>;

    /// Writes host bytes to any memory. Graphs launched later see them.
    ///
    /// # Errors
    ///
    /// Returns an error if the range is not within memory of this driver.
    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError>;

    /// Reads bytes from any memory. Device memory is read after all launched graphs.
    ///
    /// # Errors
    ///
    /// Returns an error if the range is not within memory of this driver.
    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError>;

    /// Creates a graph that can be launched.
    ///
    /// # Errors
    ///
    /// Returns an error if [`GraphSpec::order`] fails, a launch exceeds a device limit, or arguments do not fit the
    /// kernel.
    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError>;

    /// Creates a graph that runs its nodes one after another and measures the time of each.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Driver::instantiate`], or an error if the driver does not measure nodes.
    fn instantiate_timed(&mut self, _spec: GraphSpec) -> Result<Graph, DriverError> {
        Err(no_times())
    }

    /// Waits for all launched graphs. Returns the times of a [timed](Driver::instantiate_timed) graph's nodes in its
    /// last run, in the order of the nodes.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Driver::synchronize`], or an error if the graph is not timed or has not run.
    fn node_times(&mut self, _graph: Graph) -> Result<Vec<Duration>, DriverError> {
        Err(no_times())
    }

    /// Destroys a graph and its host work.
    ///
    /// # Errors
    ///
    /// Returns an error if the graph does not exist.
    fn discard(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Starts a graph after all graphs launched before.
    ///
    /// # Errors
    ///
    /// Returns an error if the graph cannot start. [`Driver::synchronize`] returns later errors.
    fn launch(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Waits for all launched graphs.
    ///
    /// # Errors
    ///
    /// Returns the first error of the graphs, whose results are then undefined.
    fn synchronize(&mut self) -> Result<(), DriverError>;
}

fn no_times() -> DriverError {
    DriverError::Malformed {
        what: "this driver does not measure the nodes of graphs".to_owned(),
    }
}
