//! Classes: a factor that occurs in many tensors, with the range of it that each device holds.

/// `len` consecutive indices from `start` on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Range {
    /// First index.
    pub start: u64,
    /// Number of indices; may be 0.
    pub len: u64,
}

impl Range {
    /// The range `[start, end)`; empty when `end` is not beyond `start`.
    pub const fn from_bounds(start: u64, end: u64) -> Range {
        Range {
            start,
            len: end.saturating_sub(start),
        }
    }

    /// One past the last index.
    pub const fn end(self) -> u64 {
        self.start + self.len
    }

    /// The smallest range of quotients by `div` that holds every index of this range.
    #[must_use]
    pub const fn project(self, div: u64) -> Range {
        if self.len == 0 {
            return Range {
                start: self.start / div,
                len: 0,
            };
        }
        let start = self.start / div;
        Range {
            start,
            len: self.end().div_ceil(div) - start,
        }
    }
}

/// A split factor: its size and the part of it on each device of the group, by rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassData {
    /// What it is, for people (`kv heads of blk.3`).
    pub name: String,
    /// Number of indices.
    pub size: u64,
    /// What each device holds. Ranges ascend with the rank, may be uneven, empty and overlap.
    pub ranges: Vec<Range>,
}

impl ClassData {
    /// What the device of rank `rank` holds of the class divided by `div`; `None` for a rank without a range.
    pub fn range(&self, rank: usize, div: u64) -> Option<Range> {
        Some(self.ranges.get(rank)?.project(div))
    }

    /// The part of [`Self::range`] that no device of a lower rank holds: each index has one primary owner.
    pub fn owned(&self, rank: usize, div: u64) -> Option<Range> {
        let own = self.range(rank, div)?;
        let taken = (0..rank)
            .filter_map(|r| self.range(r, div))
            .filter(|r| r.len > 0);
        let floor = taken.map(Range::end).max().unwrap_or(0);
        Some(Range::from_bounds(
            own.start.max(floor),
            own.end().max(floor),
        ))
    }

    /// Whether two devices hold a common index of the class divided by `div`.
    pub fn overlaps(&self, div: u64) -> bool {
        (0..self.ranges.len()).any(|r| {
            self.owned(r, div) != self.range(r, div)
                && self.range(r, div).is_some_and(|x| x.len > 0)
        })
    }
}
