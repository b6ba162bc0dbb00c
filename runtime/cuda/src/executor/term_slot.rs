//! A device's two buffers for quantised activations.

/// One of the two buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermSlot {
    First,
    Second,
}

impl TermSlot {
    pub(super) const fn other(self) -> TermSlot {
        match self {
            TermSlot::First => TermSlot::Second,
            TermSlot::Second => TermSlot::First,
        }
    }

    /// Returns the buffer's index.
    pub(super) const fn number(self) -> u64 {
        self as u64
    }
}
