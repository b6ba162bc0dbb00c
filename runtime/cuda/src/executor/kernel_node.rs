//! A kernel as a node of a graph.

use crate::driver::{Args, Function, KernelNode};
use crate::kernels::Kernel;

/// The node that runs a kernel, which is loaded as this function: with the addresses of its views, of its parameters and of what
/// it tells of indices out of range, and with the number of its launch.
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
