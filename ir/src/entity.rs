//! Handles: `u32` indices into a graph's tables, printed with a prefix (`v7`, `inst3`, `c1`).

use std::fmt;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);

        impl $name {
            /// Returns the handle at `index`.
            ///
            /// # Panics
            /// Panics if the index exceeds `u32`, which this crate's parsers prevent.
            pub fn new(index: usize) -> Self {
                Self(u32::try_from(index).expect("invariant: tables hold fewer than 2^32 entities"))
            }

            /// Returns the position in the table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    };
}

handle!(
    /// An SSA value.
    Value, "v"
);
handle!(
    /// An instruction: one op with its operands and results.
    Inst, "inst"
);
handle!(
    /// A class: factors that a group's devices split in the same way.
    Class, "c"
);
handle!(
    /// A device of the deployment.
    Device, "dev"
);
handle!(
    /// A group of devices that share tensors.
    Group, "tp"
);
handle!(
    /// A region of a place's memory in a [program](crate::program).
    Arena, "a"
);
handle!(
    /// A range of an arena that holds values.
    Buffer, "b"
);
handle!(
    /// A kernel launch for some instructions.
    Launch, "l"
);
