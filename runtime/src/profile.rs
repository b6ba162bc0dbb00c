//! The times of the kernels of batches.

use std::time::Duration;

/// The time that the launches of a kernel took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelTime {
    /// The kernel's name, with the type of the weights that it reads.
    pub kernel: String,
    /// The number of launches.
    pub calls: u64,
    /// Their time together.
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
