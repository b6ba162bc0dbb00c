//! Labels: the facts about a leaf that a sharding states.

use crate::sharding::ClassRef;

/// A label of a leaf: how devices hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Unknown so far.
    Free,
    /// Whole on every device.
    Whole,
    /// Split by this class.
    Split(ClassRef),
    /// A minor part of a factor split by this class, directly after the major part `class / div`.
    Minor(ClassRef),
}

impl Label {
    /// True if devices hold different parts of the leaf.
    pub const fn is_split(self) -> bool {
        matches!(self, Label::Split(_) | Label::Minor(_))
    }
}
