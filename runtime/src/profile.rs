//! Kernel times of batches.

use std::time::Duration;

/// Total time of a kernel's launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// Kernel name, with the type of the weights that it reads.
    pub kernel: String,
    /// The number of launches.
    pub calls: u64,
    /// Total time.
    pub time: Duration,
}

impl KernelTime {
    /// Adds times to a list that has each kernel once.
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
