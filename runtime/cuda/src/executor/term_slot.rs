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

    pub(super) const fn number(self) -> u64 {
        self as u64
    }
}
