//! What a sharding says of a leaf.

use crate::sharding::ClassRef;

/// What is known of a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Nothing yet.
    Free,
    /// It is whole on every device.
    Whole,
    /// It is split by this class.
    Split(ClassRef),
    /// It is a minor part of a factor split by this class, right behind the major part `class / div`.
    Rest(ClassRef),
}

impl Label {
    /// Whether devices hold different parts of the leaf.
    pub const fn is_split(self) -> bool {
        matches!(self, Label::Split(_) | Label::Rest(_))
    }
}
