//! Terms over the values of a region.

use egg::{Id, Language};

/// An op of the [`Table`](super::analysis::Table).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OpRef(pub(crate) u32);

/// A list of types, places and shardings of the [`Table`](super::analysis::Table): what an op gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct OutRef(pub(crate) u32);

/// What stands at the head of a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Head {
    /// A value from outside, or one that an op without operands defines: a weight, a state, an input.
    Leaf(u32),
    /// An op. What it gives is part of it: a copy is to somewhere.
    Op(OpRef, OutRef),
    /// A result of an op with several.
    Result(u32),
}

/// A term: a head and its operands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Node {
    pub(crate) head: Head,
    pub(crate) operands: Vec<Id>,
}

impl Language for Node {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        self.head
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.operands.len() == other.operands.len()
    }

    fn children(&self) -> &[Id] {
        &self.operands
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.operands
    }
}
