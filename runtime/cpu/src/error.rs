//! Errors of kernels and teams.

use tpc_ir::DType;

/// An error of a launch. Messages have fixed parts because kernels do not allocate.
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
    /// The views do not match the kernel.
    #[error("the views do not fit the kernel: {what}")]
    Shape {
        /// The violated condition.
        what: &'static str,
    },
    /// The scratch memory is too small.
    #[error("the kernel needs {needed} bytes of scratch memory, got {found}")]
    Scratch {
        /// Bytes required.
        needed: usize,
        /// Bytes given.
        found: usize,
    },
    /// Another rank failed, or does not answer.
    #[error("another rank failed")]
    Rank,
    /// Another worker of the team failed.
    #[error("another worker failed")]
    Stopped,
    /// A worker panicked.
    #[error("a worker panicked")]
    Panicked,
}

/// An op without a CPU kernel for these types.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no CPU kernel for {op} on {operands:?} giving {results:?}: {reason}")]
pub struct Unsupported {
    /// The op's name.
    pub op: &'static str,
    /// Element types of the operands.
    pub operands: Vec<DType>,
    /// Element types of the results.
    pub results: Vec<DType>,
    /// The reason, as a clause.
    pub reason: &'static str,
}

/// An error in creating a team.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A team of 0 threads.
    #[error("a device needs at least one thread")]
    Empty,
    /// The process may not use a core.
    #[error("cannot run a thread on core {core}")]
    Core {
        /// The core, as the system numbers it.
        core: usize,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system did not start a thread.
    #[error("cannot start a thread")]
    Spawn(#[from] std::io::Error),
}
