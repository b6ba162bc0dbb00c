//! Errors of kernels and of teams.

use tpc_ir::DType;

/// The reason that a launch has no result. Kernels do not allocate, so the message is made of fixed parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// An index read from data is out of range.
    #[error("{what} {index} is out of range: expected 0 to {bound}, exclusive")]
    Index {
        /// The kind of object that the index selects.
        what: &'static str,
        /// The index.
        index: i64,
        /// The number of valid indices.
        bound: usize,
    },
    /// The views given do not fit the kernel.
    #[error("the views do not fit the kernel: {what}")]
    Shape {
        /// The condition that does not hold.
        what: &'static str,
    },
    /// The scratch memory is smaller than the kernel requires.
    #[error("the kernel needs {needed} bytes of scratch memory, {found} are given")]
    Scratch {
        /// Bytes that the kernel requires.
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

/// The error for an op without a kernel for these element types.
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

/// The reason that a team cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum TeamError {
    /// A team without workers.
    #[error("a device needs at least one thread")]
    Empty,
    /// The system refuses a thread.
    #[error("cannot start a thread")]
    Spawn(#[from] std::io::Error),
}
