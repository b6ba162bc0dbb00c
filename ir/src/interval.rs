//! Intervals of indices.

/// `len` consecutive indices from `start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Interval {
    /// First index.
    pub start: u64,
    /// Number of indices; may be 0.
    pub len: u64,
}

impl Interval {
    /// Returns `[start, end)`; empty if `end ≤ start`.
    pub const fn from_bounds(start: u64, end: u64) -> Interval {
        Interval {
            start,
            len: end.saturating_sub(start),
        }
    }

    /// Returns the end (exclusive); `u64::MAX` on overflow.
    pub const fn end(self) -> u64 {
        self.start.saturating_add(self.len)
    }

    /// Returns the smallest interval that contains `index / div` for each of its indices.
    #[must_use]
    pub const fn project(self, div: u64) -> Interval {
        if self.len == 0 {
            return Interval {
                start: self.start / div,
                len: 0,
            };
        }
        let start = self.start / div;
        Interval {
            start,
            len: self.end().div_ceil(div) - start,
        }
    }
}
