use crate::driver::{Args, Function, KernelNode};
use crate::kernels::Kernel;

/// Returns a graph node that launches a kernel. `addresses` has the addresses of the views, parameters and fault
/// record; `launch` is the index of the launch.
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
