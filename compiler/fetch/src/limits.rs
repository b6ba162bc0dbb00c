use std::time::Duration;

/// The limits of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The timeout for connecting.
    pub connect: Duration,
    /// The timeout for each read.
    pub read: Duration,
    /// The total time of all reads.
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
