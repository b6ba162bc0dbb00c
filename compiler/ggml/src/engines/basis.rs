use std::fmt;

use serde::{Deserialize, Serialize};

use super::Backend;

/// The evidence for a statement about an engine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Runs of the engine on one back end.
    Measured {
        /// The engine's version.
        version: String,
        /// The back end.
        backend: Backend,
    },
    /// The engine's source.
    Read {
        /// The engine's version.
        version: String,
    },
    /// A public report.
    Reported {
        /// The back end.
        backend: Backend,
        /// The address of the report.
        link: String,
    },
    /// A derivation from other facts.
    Derived,
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Basis::Measured { version, backend } => {
                write!(f, "measured on {version}, {}", backend.name())
            }
            Basis::Read { version } => write!(f, "read in {version}'s source"),
            Basis::Reported { backend, link } => {
                write!(f, "reported for {}: {link}", backend.name())
            }
            Basis::Derived => write!(f, "derived"),
        }
    }
}
