//! Builds graph nodes from kernels.

use crate::driver::{Args, Function, KernelNode};
use crate::kernels::Kernel;

/// Returns a kernel's node. `addresses` has the addresses of its views, parameters and fault record; `launch` is the
/// launch's index.
pub fn kernel_node(
    kernel: &Kernel,
    function: Function,
    addresses: [u64; 3],
    launch: u32,
) -> KernelNode {
    let [views, params, fault] = addresses;
    KernelNode {
        function,
        grid: kernel.geometry.grid,
        block: [kernel.geometry.threads, 1, 1],
        shared_bytes: kernel.geometry.shared_bytes,
        args: Args::new().u64(views).u64(params).u64(fault).u32(launch),
    }
}
