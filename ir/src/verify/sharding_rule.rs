//! The invariants of shardings ([the list](super)), with their codes and cures.

use super::codes;
use crate::code::Code;

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $code:ident, $help:literal;)*) => {
        /// An invariant of shardings.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ShardingRule { $($(#[$doc])* $variant,)* }

        impl ShardingRule {
            /// Returns the rule's code.
            pub const fn code(self) -> &'static Code {
                match self { $(ShardingRule::$variant => &codes::$code,)* }
            }

            /// Returns the cure.
            pub const fn help(self) -> &'static str {
                match self { $(ShardingRule::$variant => $help,)* }
            }
        }
    };
}

rules! {
    /// Trees (TPC0250).
    Tree = SHARDING_TREE, "name a declared class with a range per device, and factors that multiply to the axis's size";
    /// Split or unreduced values (TPC0251).
    SplitAndUnreduced = SHARDING_SPLIT_AND_UNREDUCED, "reduce the value before it is split";
    /// Terms split once (TPC0252).
    SplitTwice = SHARDING_SPLIT_TWICE, "split one factor of each term";
    /// Storage granules (TPC0253).
    Granule = SHARDING_GRANULE, "remove `granule`, or give a weight that is split on axis 0 the block length of \
    its type, or 32 if blocks are longer";
    /// Blocks (TPC0254).
    Blocks = SHARDING_BLOCKS, "end ranges at block boundaries, or give the weight a storage granule";
    /// Equations (TPC0255).
    Equation = SHARDING_EQUATION, "split operands and results by the same factors";
    /// Whole factors (TPC0256).
    Whole = SHARDING_WHOLE, "gather the operand first, or split another factor";
    /// Norms (TPC0257).
    Norm = SHARDING_NORM, "use norm_stats, all_reduce and norm_apply";
    /// Indexed and contracted axes (TPC0258).
    OneRange = SHARDING_ONE_RANGE, "split the whole of an indexed axis, and all segments of a contraction";
    /// Unreduced results (TPC0259).
    UnreducedResult = SHARDING_UNREDUCED_RESULT, "declare the result as stated in the message";
    /// Unreduced operands (TPC0260).
    UnreducedOperand = SHARDING_UNREDUCED_OPERAND, "all_reduce the operand first";
    /// Transfers (TPC0261).
    Transfer = SHARDING_TRANSFER, "reduce unreduced values, and only those, before they move";
    /// Leaves (TPC0262).
    Leaf = SHARDING_LEAF, "remove `partial` or `owner_masked`: a leaf is whole or split";
}
