//! Limits on what clients may ask for, and on how long they are waited for.

use std::time::Duration;

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The bytes that all clients together may allocate.
    pub memory: u64,
    /// The connections that are open at once.
    pub connections: usize,
    /// The buffers of a connection.
    pub buffers: usize,
    /// The tensors of a graph.
    pub tensors: u64,
    /// The longest wait for the greeting, and for the next bytes within a message.
    pub stall: Duration,
}

impl Limits {
    /// The limits of a server with so many bytes of memory.
    pub const fn new(memory: u64) -> Limits {
        Limits {
            memory,
            connections: 32,
            buffers: 4096,
            tensors: 1 << 18,
            stall: Duration::from_secs(30),
        }
    }
}
