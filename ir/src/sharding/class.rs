use crate::interval::Interval;

/// A split factor, with the range of each device of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassData {
    /// A description for people (`kv heads of blk.3`).
    pub name: String,
    /// Number of indices.
    pub size: u64,
    /// The range of each device, by rank. Ranges ascend; they may be uneven or empty, and may overlap.
    pub ranges: Vec<Interval>,
}

impl ClassData {
    /// Returns the range of device `rank` in the class divided by `div`; `None` for a rank without a range.
    pub fn range(&self, rank: usize, div: u64) -> Option<Interval> {
        Some(self.ranges.get(rank)?.project(div))
    }

    /// Returns the part of [`Self::range`] absent from lower ranks: each index has one primary owner.
    pub fn owned_range(&self, rank: usize, div: u64) -> Option<Interval> {
        let own = self.range(rank, div)?;
        let taken = (0..rank)
            .filter_map(|r| self.range(r, div))
            .filter(|r| r.len > 0);
        let floor = taken.map(Interval::end).max().unwrap_or(0);
        Some(Interval::from_bounds(
            own.start.max(floor),
            own.end().max(floor),
        ))
    }

    /// True if two devices share an index of the class divided by `div`.
    pub fn overlaps(&self, div: u64) -> bool {
        (0..self.ranges.len()).any(|r| {
            self.owned_range(r, div) != self.range(r, div)
                && self.range(r, div).is_some_and(|x| x.len > 0)
        })
    }
}
