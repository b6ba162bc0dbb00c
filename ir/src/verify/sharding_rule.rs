//! The invariants of shardings, with their codes and cures.

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
    /// A tree's class references exist and its factors multiply to the axis's size.
    Tree = SHARDING_TREE, "name a declared class with a range per device, and factors that multiply to the axis's size";
    /// No value is both split and unreduced.
    SplitAndUnreduced = SHARDING_SPLIT_AND_UNREDUCED, "reduce the value before it is split";
    /// No term is split by two classes.
    SplitTwice = SHARDING_SPLIT_TWICE, "split one factor of each term";
    /// Only weights split on axis 0 have a storage granule: their block, or a part of it that devices may store.
    Granule = SHARDING_GRANULE, "remove `granule`, or give a weight that is split on axis 0 the block length of \
    its type, or 32 if blocks are longer";
    /// Devices hold whole blocks, or one run of whole storage granules of a weight.
    Blocks = SHARDING_BLOCKS, "end ranges at block boundaries, or give the weight a storage granule";
    /// The equations of the op's rule hold.
    Equation = SHARDING_EQUATION, "split operands and results by the same factors";
    /// Factors that the op needs whole are whole.
    Whole = SHARDING_WHOLE, "gather the operand first, or split another factor";
    /// Norms over a split axis exchange their statistic.
    Norm = SHARDING_NORM, "use norm_stats, all_reduce and norm_apply";
    /// An indexed axis is one range per device; contractions are split in all segments or not at all.
    OneRange = SHARDING_ONE_RANGE, "split the whole of an indexed axis, and all segments of a contraction";
    /// A result is unreduced if and only if its operands and the op imply it.
    UnreducedResult = SHARDING_UNREDUCED_RESULT, "declare the result as stated in the message";
    /// An op accepts its unreduced operands.
    UnreducedOperand = SHARDING_UNREDUCED_OPERAND, "all_reduce the operand first";
    /// Copies and gathers move only reduced values; reductions take only unreduced values.
    Transfer = SHARDING_TRANSFER, "reduce unreduced values, and only those, before they move";
    /// No leaf is unreduced.
    Leaf = SHARDING_LEAF, "remove `partial` or `owner_masked`: a leaf is whole or split";
}
