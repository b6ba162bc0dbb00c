use tpc_ir::BudgetExceeded;
use tpc_ir::op::TypeError;

/// The reason why a sharded graph cannot be lowered. Except for the budget, this is a bug in the verifier.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LowerError {
    /// An op's parameters cannot be adapted to a device's part.
    #[error("`{op}` of `{value}` cannot run on the part that device {rank} holds")]
    Rebase {
        /// The op.
        op: &'static str,
        /// The op's first result.
        value: String,
        /// The device's rank.
        rank: usize,
    },
    /// The op does not accept the operands' parts on a device.
    #[error("`{op}` of `{value}` on device {rank}: {source}")]
    Type {
        /// The op.
        op: &'static str,
        /// The op's first result.
        value: String,
        /// The device's rank.
        rank: usize,
        /// The type error of the op.
        source: TypeError,
    },
    /// The budget is exhausted.
    #[error(transparent)]
    Budget(#[from] BudgetExceeded),
    /// The op's result on a device differs from the type that its sharding requires.
    #[error(
        "`{op}` of `{value}` on device {rank} gives {found}, but its sharding requires {expected}"
    )]
    Part {
        /// The op.
        op: &'static str,
        /// The op's first result.
        value: String,
        /// The device's rank.
        rank: usize,
        /// The type that the sharding requires.
        expected: String,
        /// The type that the op gives.
        found: String,
    },
}
