//! Errors of lowering.

use tpc_ir::BudgetExceeded;
use tpc_ir::op::TypeError;

/// The reason that a sharded graph has no programs. Unless the budget ran out, this is a bug in the verifier, which
/// should have rejected the graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// An op's parameters cannot be re-based to a device's part.
    #[error("`{op}` of `{value}` cannot run on the part that device {rank} holds")]
    Rebase {
        /// The op.
        op: &'static str,
        /// Its first result.
        value: String,
        /// The device's rank.
        rank: usize,
    },
    /// A local op does not accept its local operands.
    #[error("`{op}` of `{value}` on device {rank}: {source}")]
    Type {
        /// The op.
        op: &'static str,
        /// Its first result.
        value: String,
        /// The device's rank.
        rank: usize,
        /// The type error of the op.
        source: TypeError,
    },
    /// The budget does not suffice. This is not a bug.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// A local op's result is not the part that the sharding promises.
    #[error("`{op}` of `{value}` on device {rank} gives {found}, its sharding says {expected}")]
    Part {
        /// The op.
        op: &'static str,
        /// Its first result.
        value: String,
        /// The device's rank.
        rank: usize,
        /// The type by the sharding.
        expected: String,
        /// The type by the op.
        found: String,
    },
}
