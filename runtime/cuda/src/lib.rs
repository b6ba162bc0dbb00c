//! # Running programs on CUDA devices
//!
//! A [`Driver`] loads modules of kernels, allocates memory and runs graphs of launches. The executor above it calls CUDA only
//! through this trait: the same graphs run on cards and on the CPU's emulation of them, `tpc-cuda-emulator`.
//!
//! | type          | what it is                                                                             |
//! |---------------|----------------------------------------------------------------------------------------|
//! | [`Driver`]    | devices, memory, modules and graphs                                                     |
//! | [`Module`]    | CUDA C++ without headers, and what was compiled of it ahead of time                      |
//! | [`GraphSpec`] | launches, copies and host work, and the edges that order them: there is no other order  |

mod codes;
pub mod driver;
pub mod executor;
pub mod kernels;
#[expect(unsafe_code, reason = "it calls a C library")]
pub mod nvrtc;
pub mod planes;

pub use codes::CODES;
pub use driver::real::{CudaDriver, cards};
pub use driver::{
    Args, CopyNode, Cubin, Device, DeviceInfo, DeviceMap, Driver, DriverError, Edge, EdgeKind,
    Endpoint, Fault, FaultKind, Function, Graph, GraphSpec, HostError, HostWork, KernelNode,
    Memory, Module, ModuleHandle, Node, SetNode, Side, Work, cache_dir,
};
pub use executor::{CudaExecutor, CudaOptions, CudaTarget, Edges, kernel_node};
