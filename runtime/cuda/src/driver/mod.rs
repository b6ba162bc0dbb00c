//! What runs kernels: devices with memory, modules of kernels, graphs of launches.
//!
//! A graph is made once per shape of batches, of explicit nodes and edges, and launched again and again. Its edges are the
//! only order: two nodes that no path joins may run at the same time, or in any order.

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
    /// A device, by its position in [`Driver::devices`].
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
    /// A graph that is ready to be launched.
    Graph, "graph"
);

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name that the driver gives it.
    pub name: String,
    /// The number of the card. Devices of one number share its memory.
    pub card: u32,
    /// The compute capability: major and minor.
    pub capability: (u32, u32),
    /// The streaming multiprocessors.
    pub multiprocessors: u32,
    /// The bytes of its memory.
    pub memory: u64,
    /// The most bytes of shared memory that a block may have.
    pub shared_per_block: u32,
}

/// A range of memory that a driver allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Whose memory it is.
    pub side: Side,
    /// The address of its first byte, a multiple of 256. Kernels of every device know it by this address; what is on the
    /// host's [side](Side::Host) the host does, too.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
}

impl Memory {
    /// The address in the host's own memory: null unless the memory is the host's. It is valid until [`Driver::free`].
    pub fn host_pointer(&self) -> *mut u8 {
        match self.side {
            Side::Host => self.address as *mut u8,
            Side::Device(_) => std::ptr::null_mut(),
        }
    }
}

/// Devices that run graphs of kernels.
///
/// All calls but [`launch`](Driver::launch) end when their work has ended.
pub trait Driver: Send {
    /// The devices.
    fn devices(&self) -> &[DeviceInfo];

    /// The bytes of a device's memory that are free now.
    ///
    /// # Errors
    /// When there is no such device, or it has failed.
    fn free_memory(&self, device: Device) -> Result<u64, DriverError>;

    /// Loads a module on a device.
    ///
    /// # Errors
    /// When the module has no code for the device and its source cannot be compiled.
    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError>;

    /// A kernel of a loaded module, by its name.
    ///
    /// # Errors
    /// When the module has no such kernel.
    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError>;

    /// Memory of a device. Its content is not defined.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError>;

    /// Memory of the host that all devices reach, and that the host reads and writes, too. It is zero.
    ///
    /// # Errors
    /// When there is not enough.
    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError>;

    /// Gives memory back. No graph that uses it may run any more.
    ///
    /// # Errors
    /// When it was not allocated here, or was given back before.
    fn free(&mut self, memory: Memory) -> Result<(), DriverError>;

    /// Lets the kernels of one device reach the memory of another: what is allocated, and what will be.
    ///
    /// # Errors
    /// [`DriverError::NoPeerAccess`] where nothing joins them.
    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError>;

    /// Writes bytes of the host to any memory.
    ///
    /// # Errors
    /// When the range is not within memory that was allocated here.
    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError>;

    /// Reads bytes of any memory.
    ///
    /// # Errors
    /// When the range is not within memory that was allocated here.
    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError>;

    /// Makes a graph ready to be launched.
    ///
    /// # Errors
    /// When an edge has no nodes or edges form a circle, when a launch is larger than the device allows, or when its
    /// arguments do not fit the kernel.
    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError>;

    /// Lets a graph go, and the host work in it.
    ///
    /// # Errors
    /// When there is no such graph.
    fn discard(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Starts a graph. Graphs run one after another.
    ///
    /// # Errors
    /// When it cannot be started. What fails while it runs is told by [`Driver::synchronize`].
    fn launch(&mut self, graph: Graph) -> Result<(), DriverError>;

    /// Waits until all graphs that were launched have ended.
    ///
    /// # Errors
    /// The first that failed in them. What the graph was to write is not defined then.
    fn synchronize(&mut self) -> Result<(), DriverError>;
}
