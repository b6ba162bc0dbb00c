//! Errors of kernels and of teams.

use tpc_ir::DType;

/// Error of a launch. Kernels do not allocate, so the message has fixed parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// An index read from data is out of range.
    #[error("{what} {index} is out of range: expected 0 to {bound}, exclusive")]
    Index {
        /// The kind of object indexed.
        what: &'static str,
        /// The index.
        index: i64,
        /// The number of valid indices.
        bound: usize,
    },
    /// The views do not fit the kernel.
    #[error("the views do not fit the kernel: {what}")]
    Shape {
        /// The violated condition.
        what: &'static str,
    },
    /// Too little scratch memory.
    #[error("the kernel needs {needed} bytes of scratch memory, got {found}")]
    Scratch {
        /// Bytes required.
        needed: usize,
        /// Bytes given.
        found: usize,
    },
    /// Another worker of the team failed.
    #[error("another worker failed")]
    Stopped,
    /// A worker panicked.
    #[error("a worker panicked")]
    Panicked,
}

/// Error of an op without a kernel for these types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no CPU kernel for {op} on {operands:?} giving {results:?}: {reason}")]
pub struct Unsupported {
    /// The op's name.
    pub op: &'static str,
    /// Element types of the operands.
    pub operands: Vec<DType>,
    /// Element types of the results.
    pub results: Vec<DType>,
    /// Reason, as a clause.
    pub reason: &'static str,
}

/// Error of creating a team.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A team without workers.
    #[error("a device needs at least one thread")]
    Empty,
    /// The system refused a thread.
    #[error("cannot start a thread")]
    Spawn(#[from] std::io::Error),
}
