use std::time::Duration;

/// Total time of one kernel's launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// Kernel name with the weight type.
    pub kernel: String,
    /// Number of launches.
    pub calls: u64,
    /// Total time.
    pub time: Duration,
    /// The bytes that the launches read and write; of kernels of cards, only the bytes of weights. 0 if unknown.
    pub bytes: u64,
    /// The arithmetic operations of the launches; 0 if unknown.
    pub operations: u64,
}

impl KernelTime {
    /// Merges times into a list with one entry per kernel.
    pub fn add(sum: &mut Vec<KernelTime>, more: Vec<KernelTime>) {
        for k in more {
            match sum.iter_mut().find(|s| s.kernel == k.kernel) {
                Some(s) => {
                    s.calls += k.calls;
                    s.time += k.time;
                    s.bytes += k.bytes;
                    s.operations += k.operations;
                }
                None => sum.push(k),
            }
        }
    }
}
