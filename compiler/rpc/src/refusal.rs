//! The reasons for which a connection is closed.

use std::io;

use tpc_diag::{Code, Diagnostic};

use crate::codes;

/// The reason why a client is not served further.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Not a message of the protocol.
    #[error("{0}")]
    Message(String),
    /// A tensor that ggml does not have.
    #[error("tensor \"{name}\": {what}")]
    Tensor {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: String,
    },
    /// Memory that the client does not have.
    #[error("{0}")]
    Memory(String),
    /// More than the server allows.
    #[error("{what}: {asked}, and the limit is {most}")]
    Limit {
        /// What there is a limit on.
        what: &'static str,
        /// What the client asks for.
        asked: u64,
        /// The limit.
        most: u64,
    },
    /// Not a graph.
    #[error("{0}")]
    Graph(String),
    /// The connection ended within a message.
    #[error("the connection ended within a message: {0}")]
    Lost(#[from] io::Error),
    /// The device cannot do what is asked for.
    #[error("{0}")]
    Device(Box<Diagnostic>),
}

impl Refusal {
    /// Something that is no message of the protocol.
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

    /// The diagnostic for the server's terminal; `client` names the connection.
    pub fn diagnostic(&self, client: &str) -> Diagnostic {
        if let Refusal::Device(d) = self {
            return (**d).clone();
        }
        let d = Diagnostic::new(self.code(), client, format!("{client}: {self}"));
        match self {
            Refusal::Message(_) => d.help("is the client of llama.cpp 0.5? Its protocol is 7.0"),
            Refusal::Tensor { .. } => {
                d.help("is the client of llama.cpp 0.5? A newer ggml numbers ops otherwise")
            }
            _ => d,
        }
    }
}
