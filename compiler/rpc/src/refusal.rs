use std::io;

use tpc_diag::{Code, Diagnostic};

use crate::codes;
use crate::version::Version;

/// A reason for closing a connection.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A malformed message.
    #[error("{0}")]
    Message(String),
    /// A tensor that ggml cannot represent.
    #[error("tensor \"{name}\": {what}")]
    Tensor {
        /// The tensor's name.
        name: String,
        /// The defect.
        what: String,
    },
    /// An access outside the client's memory.
    #[error("{0}")]
    Memory(String),
    /// A request above a limit.
    #[error("{what}: {asked} requested, the limit is {most}")]
    Limit {
        /// The limited quantity.
        what: &'static str,
        /// The requested amount.
        asked: u64,
        /// The limit.
        most: u64,
    },
    /// An invalid graph.
    #[error("{0}")]
    Graph(String),
    /// The connection ended within a message.
    #[error("the connection ended within a message: {0}")]
    Lost(#[from] io::Error),
    /// A request that the device cannot execute.
    #[error("{0}")]
    Device(Box<Diagnostic>),
}

impl Refusal {
    pub(crate) fn message(what: impl Into<String>) -> Refusal {
        Refusal::Message(what.into())
    }

    fn code(&self) -> &'static Code {
        match self {
            Refusal::Message(_) => &codes::MESSAGE,
            Refusal::Tensor { .. } => &codes::TENSOR,
            Refusal::Memory(_) => &codes::MEMORY,
            Refusal::Limit { .. } => &codes::LIMIT,
            Refusal::Graph(_) => &codes::GRAPH,
            Refusal::Lost(_) => &codes::LOST,
            Refusal::Device(d) => d.code,
        }
    }

    /// Returns the diagnostic for the connection named `client`, which the server met with `version`.
    pub fn diagnostic(&self, client: &str, version: Version) -> Diagnostic {
        if let Refusal::Device(d) = self {
            return (**d).clone();
        }
        let d = Diagnostic::new(self.code(), client, format!("{client}: {self}"));
        match self {
            Refusal::Message(_) | Refusal::Tensor { .. } => d.help(format!(
                "use a client of {}, or start tpc with `--protocol` for the client's version",
                version.releases()
            )),
            _ => d,
        }
    }
}

/// Returns the warning about a client that left after the greeting.
pub fn left_after_greeting(client: &str, version: Version) -> Diagnostic {
    let other = version.other();
    let message = format!(
        "{client} ended its connection after the greeting: it does not speak version {version} of the protocol"
    );
    Diagnostic::new(&codes::OTHER_VERSION, client, message).help(format!(
        "for {}, start tpc with `--protocol {}`",
        other.releases(),
        other.numbers()[0]
    ))
}
