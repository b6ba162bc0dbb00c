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
    /// The bytes of weights that the launches read; 0 if unknown.
    pub weight_bytes: u64,
}

impl KernelTime {
    /// Merges times into a list with one entry per kernel.
    pub fn add(sum: &mut Vec<KernelTime>, more: Vec<KernelTime>) {
        for k in more {
            match sum.iter_mut().find(|s| s.kernel == k.kernel) {
                Some(s) => {
                    s.calls += k.calls;
                    s.time += k.time;
                    s.weight_bytes += k.weight_bytes;
                }
                None => sum.push(k),
            }
        }
    }
}
