use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes of all buffers, for all clients together.
    pub memory: u64,
    /// The maximum number of open connections.
    pub connections: usize,
    /// The maximum number of buffers per connection.
    pub buffers: usize,
    /// The maximum number of tensors per graph.
    pub tensors: u64,
    /// The maximum number of tensors of all graphs that a connection stores.
    pub stored_tensors: u64,
    /// The timeout for the greeting, and for the next bytes of a message.
    pub stall: Duration,
}

impl Limits {
    /// Returns the default limits with `memory` bytes.
    pub const fn new(memory: u64) -> Limits {
        Limits {
            memory,
            connections: 32,
            buffers: 4096,
            tensors: 1 << 18,
            stored_tensors: 1 << 23,
            stall: Duration::from_secs(30),
        }
    }
}
