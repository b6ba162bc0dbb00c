//! # Running programs on CUDA devices
//!
//! A [`Driver`] loads modules of kernels, allocates memory and runs graphs of launches. What is above it knows no CUDA call:
//! the same graphs run on graphics cards and on an emulation of them by the CPU.
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
pub use driver::emulated::{Build, EmulatedDriver, EmulatedOptions, Fault, FaultKind, Links};
pub use driver::real::{CudaDriver, cards};
pub use driver::{
    Args, Bound, CopyNode, Cubin, Device, DeviceInfo, Driver, DriverError, Edge, EdgeKind,
    Endpoint, Function, Graph, GraphSpec, HostError, HostWork, KernelNode, Memory, Module,
    ModuleHandle, Node, SetNode, Side, Work, kept,
};
pub use executor::{CudaExecutor, CudaOptions, CudaTarget, Edges, node};
