//! # CUDA devices
//!
//! A [`Driver`] loads kernel modules, allocates memory and runs graphs of launches. The executor calls CUDA only
//! through this trait, so cards and the CPU emulation (`tpc-cuda-emulator`) run the same graphs.
//!
//! | type          | content                                                       |
//! |---------------|---------------------------------------------------------------|
//! | [`Driver`]    | devices, memory, modules and graphs                           |
//! | [`Module`]    | CUDA C++ without includes, and optional precompiled code      |
//! | [`GraphSpec`] | launches, copies and host work, with edges that order them    |

mod codes;
pub mod driver;
pub mod dump;
pub mod executor;
pub mod kernels;
#[expect(unsafe_code, reason = "it calls a C library")]
pub mod nvrtc;
pub mod planes;
pub mod replay;
pub mod step_model;

pub use codes::{CODES, DEVICE_LOST, FAULT, HANG, KERNEL_FAILED, NO_PEER_ACCESS};
pub use driver::real::{CudaDriver, cards, driver_version};
pub use driver::{
    Args, CopyNode, Cubin, CudaVersion, Device, DeviceFailure, DeviceInfo, DeviceMap, Driver,
    DriverError, Edge, EdgeKind, Endpoint, Fault, FaultKind, Function, Graph, GraphSpec, HostError,
    HostWork, KernelNode, Memory, Module, ModuleHandle, Node, PeerFailure, SetNode, Side,
    WatchedDriver, Work, cache_dir,
};
pub use executor::{
    CudaExecutor, CudaOptions, CudaTarget, Edges, LaunchMode, StandaloneLaunch, TensorView,
    kernel_node, load_kernels,
};
