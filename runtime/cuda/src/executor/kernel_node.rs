use crate::driver::{Args, Function, KernelNode};
use crate::kernels::Kernel;

/// Returns a graph node that launches a kernel. `addresses` has the addresses of the views, parameters and fault
/// record; `launch` is the index of the launch; `operand` gives the address of an operand.
pub fn kernel_node(
    kernel: &Kernel,
    function: Function,
    addresses: [u64; 3],
    launch: u32,
    operand: impl Fn(usize) -> u64,
) -> KernelNode {
    let [views, params, fault] = addresses;
    let args = Args::new().u64(views).u64(params).u64(fault).u32(launch);
    let weights = kernel.weights.iter();
    let weights: Vec<u8> = weights.flat_map(|w| w.bytes(operand(w.operand))).collect();
    KernelNode {
        function,
        grid: kernel.geometry.grid,
        block: [kernel.geometry.threads, 1, 1],
        shared_bytes: kernel.geometry.shared_bytes,
        args: match weights.is_empty() {
            true => args,
            false => args.bytes(&weights),
        },
    }
}
