//! Limits on what a server may make a reader wait for.

use std::time::Duration;

/// Limits on waiting, and on being sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest that connecting may take.
    pub connect: Duration,
    /// The longest that a read may wait for bytes.
    pub read: Duration,
    /// The longest that all reads of a client may take.
    pub whole: Duration,
    /// The most redirects that are followed.
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
