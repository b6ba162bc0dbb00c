use std::io;

use crate::version::Version;

/// A reason why a server did not compute a graph.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// No server answers.
    #[error("no server answers: {0}")]
    Unreachable(io::Error),
    /// The server speaks an unknown version of the protocol.
    #[error("the server speaks version {}.{}.{} of the RPC protocol; tpc speaks {}", .0[0], .0[1], .0[2], versions())]
    Version([u8; 3]),
    /// The server ended the connection, for example because an assertion failed, or did not reply in time.
    #[error("the server ended the connection or did not reply: {0}")]
    Lost(#[from] io::Error),
    /// A reply does not fit the request.
    #[error("the server replied with {0}")]
    Reply(String),
    /// The server lacks memory.
    #[error("the server cannot allocate {bytes} bytes")]
    Memory {
        /// The size of the buffer.
        bytes: u64,
    },
    /// The protocol cannot express the graph.
    #[error("{0}")]
    Graph(String),
}

fn versions() -> String {
    let all: Vec<String> = Version::ALL.iter().map(ToString::to_string).collect();
    all.join(" and ")
}
