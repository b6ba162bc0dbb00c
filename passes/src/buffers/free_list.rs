use tpc_ir::program::Extent;

/// The free ranges of an unbounded arena, allocated by best fit.
#[derive(Clone, Debug, Default)]
pub(super) struct FreeList {
    /// Free ranges `[start, end)` in bytes, ascending, below the field `end`.
    ranges: Vec<(u64, u64)>,
    end: u64,
}

impl FreeList {
    /// Allocates `bytes`, rounded up to a nonzero multiple of `alignment`. Returns `None` on overflow.
    pub(super) fn take(&mut self, bytes: u64, alignment: u64) -> Option<u64> {
        let bytes = bytes.max(1).checked_next_multiple_of(alignment)?;
        let fits = |&(_, (start, end)): &(usize, &(u64, u64))| end - start >= bytes;
        let ranges = self.ranges.iter().enumerate().filter(fits);
        if let Some((i, &(start, end))) = ranges.min_by_key(|(_, (start, end))| end - start) {
            if start + bytes < end {
                self.ranges[i].0 = start + bytes;
            } else {
                self.ranges.remove(i);
            }
            return Some(start);
        }
        // Extend the last free range.
        let start = match self.ranges.last() {
            Some(&(start, end)) if end == self.end => {
                self.ranges.pop();
                start
            }
            _ => self.end,
        };
        self.end = start.checked_add(bytes)?;
        Some(start)
    }

    pub(super) fn give(&mut self, extent: Extent, alignment: u64) {
        let bytes = extent.bytes.max(1).next_multiple_of(alignment);
        let (start, end) = (extent.offset, extent.offset + bytes);
        let at = self.ranges.partition_point(|r| r.0 < start);
        let before = at > 0 && self.ranges[at - 1].1 == start;
        let behind = self.ranges.get(at).is_some_and(|r| r.0 == end);
        match (before, behind) {
            (true, true) => {
                self.ranges[at - 1].1 = self.ranges[at].1;
                self.ranges.remove(at);
            }
            (true, false) => self.ranges[at - 1].1 = end,
            (false, true) => self.ranges[at].0 = start,
            (false, false) => self.ranges.insert(at, (start, end)),
        }
    }

    pub(super) const fn peak(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again() {
        let mut free = FreeList::default();
        let take = |free: &mut FreeList, n| Extent {
            offset: free.take(n, 64).expect("small"),
            bytes: n,
        };
        let (a, b, c) = (
            take(&mut free, 100),
            take(&mut free, 64),
            take(&mut free, 1),
        );
        assert_eq!([a.offset, b.offset, c.offset], [0, 128, 192]);
        free.give(a, 64);
        free.give(b, 64);
        assert_eq!(take(&mut free, 190).offset, 0);
        free.give(c, 64);
        assert_eq!(take(&mut free, 300).offset, 192);
        assert_eq!(free.peak(), 192 + 320);
    }
}
