//! Limits on requests.

use std::time::Duration;

/// Limits on times and redirects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The timeout for connecting.
    pub connect: Duration,
    /// The timeout for the next bytes of a read.
    pub read: Duration,
    /// The total time for all reads of a client.
    pub whole: Duration,
    /// The maximum number of redirects.
    pub redirects: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connect: Duration::from_secs(15),
            read: Duration::from_secs(20),
            whole: Duration::from_secs(120),
            redirects: 8,
        }
    }
}
