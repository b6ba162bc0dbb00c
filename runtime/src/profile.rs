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
}

impl KernelTime {
    /// Merges times into a list with one entry per kernel.
    pub fn add(sum: &mut Vec<KernelTime>, more: Vec<KernelTime>) {
        for k in more {
            match sum.iter_mut().find(|s| s.kernel == k.kernel) {
                Some(s) => {
                    s.calls += k.calls;
                    s.time += k.time;
                }
                None => sum.push(k),
            }
        }
    }
}
