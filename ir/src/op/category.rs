//! Categories of ops. Passes treat all ops of a category in the same way.

/// The category of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OpCategory {
    /// A leaf that stays in memory between batches: a weight or a state.
    Stored,
    /// A leaf that the caller provides per batch.
    Input,
    /// A leaf that every place can compute locally.
    Constant,
    /// A view of all elements of operand 0, with other sizes or axis order.
    Layout,
    /// A view of some elements of operand 0.
    Selection,
    /// The elements of operand 0 repeated, in new memory.
    Repetition,
    /// All elements of the operands, in order or between zeros, in new memory.
    Assembly,
    /// Operand 0 with some elements replaced in place.
    Update,
    /// Operand 0 at another place.
    Copy,
    /// An exchange among all devices of a group.
    Collective(Collective),
    /// A matrix product, contracting axis 0 of operands 0 and 1.
    Product,
    /// Other computation, far more expensive than moving its operands. Runs at the place of its layer.
    Heavy,
    /// Other computation. Runs at the place of its operands or of its reader.
    Light,
}

/// The kinds of collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// The sum, on every device.
    AllReduce,
    /// The concatenated parts, on every device.
    AllGather,
    /// The sum, each device with a part of it.
    ReduceScatter,
    /// Parts along one axis exchanged for parts along another.
    AllToAll,
}

impl Collective {
    /// True if the operands are summed.
    pub const fn sums(self) -> bool {
        match self {
            Collective::AllReduce | Collective::ReduceScatter => true,
            Collective::AllGather | Collective::AllToAll => false,
        }
    }
}

impl OpCategory {
    /// True if the op takes no operands.
    pub const fn is_leaf(self) -> bool {
        match self {
            OpCategory::Stored | OpCategory::Input | OpCategory::Constant => true,
            OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Copy
            | OpCategory::Collective(_)
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => false,
        }
    }

    /// True if the op moves data between places or devices.
    pub const fn is_transfer(self) -> bool {
        match self {
            OpCategory::Copy | OpCategory::Collective(_) => true,
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => false,
        }
    }

    /// True if the result holds only zeros and elements of the operands, each at most once.
    pub const fn is_movement(self) -> bool {
        match self {
            OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Assembly
            | OpCategory::Copy => true,
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Repetition
            | OpCategory::Update
            | OpCategory::Collective(_)
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => false,
        }
    }

    /// True if the result is a view of operand 0.
    pub const fn is_view(self) -> bool {
        match self {
            OpCategory::Layout | OpCategory::Selection => true,
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Copy
            | OpCategory::Collective(_)
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => false,
        }
    }

    /// Returns the operand whose memory the result shares; `None` for new memory.
    pub const fn aliases(self) -> Option<usize> {
        match self {
            OpCategory::Layout | OpCategory::Selection | OpCategory::Update => Some(0),
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Copy
            | OpCategory::Collective(_)
            | OpCategory::Product
            | OpCategory::Heavy
            | OpCategory::Light => None,
        }
    }
}
