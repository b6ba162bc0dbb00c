//! A best-fit allocator that computes the size of a buffer.

#[derive(Clone, Copy, Debug)]
struct Free {
    start: u64,
    len: u64,
}

/// The free ranges of a buffer, ascending. The last range is unbounded.
#[derive(Clone, Debug)]
pub(super) struct Allocator {
    alignment: u64,
    free: Vec<Free>,
    most: u64,
}

impl Allocator {
    pub(super) fn new(alignment: u64) -> Allocator {
        Allocator {
            alignment,
            free: vec![Free {
                start: 0,
                len: u64::MAX,
            }],
            most: 0,
        }
    }

    /// Returns the buffer size: the largest end of any range so far.
    pub(super) const fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn round_up(&self, bytes: u64) -> u64 {
        bytes
            .checked_next_multiple_of(self.alignment)
            .unwrap_or(u64::MAX)
    }

    /// Allocates from the smallest sufficient range, or else from the unbounded range. Returns the start.
    pub(super) fn allocate(&mut self, bytes: u64) -> u64 {
        let bytes = self.round_up(bytes);
        let last = self.free.len() - 1;
        let mut best = last;
        for (i, f) in self.free[..last].iter().enumerate() {
            if f.len >= bytes && (best == last || f.len <= self.free[best].len) {
                best = i;
            }
        }
        let found = &mut self.free[best];
        let start = found.start;
        found.start = found.start.saturating_add(bytes);
        found.len = found.len.saturating_sub(bytes);
        if found.len == 0 && best < last {
            self.free.remove(best);
        }
        self.most = self.most.max(start.saturating_add(bytes));
        start
    }

    pub(super) fn release(&mut self, start: u64, bytes: u64) {
        let len = self.round_up(bytes);
        if len == 0 {
            return;
        }
        let at = self.free.partition_point(|f| f.start < start);
        let joins_next = (self.free.get(at)).is_some_and(|f| start.saturating_add(len) == f.start);
        let joins_before = at > 0 && {
            let f = self.free[at - 1];
            f.start.saturating_add(f.len) == start
        };
        match (joins_before, joins_next) {
            (true, true) => {
                let next = self.free.remove(at);
                let f = &mut self.free[at - 1];
                f.len = f.len.saturating_add(len).saturating_add(next.len);
            }
            (true, false) => self.free[at - 1].len += len,
            (false, true) => {
                let f = &mut self.free[at];
                f.start = start;
                f.len = f.len.saturating_add(len);
            }
            (false, false) => self.free.insert(at, Free { start, len }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_range_that_suffices_is_taken() {
        let mut a = Allocator::new(128);
        let [x, y, z] = [1000, 200, 500].map(|n| a.allocate(n));
        assert_eq!((x, y, z, a.most()), (0, 1024, 1280, 1792));
        a.release(x, 1000);
        a.release(z, 500);
        assert_eq!(a.allocate(100), 0);
        assert_eq!(a.allocate(1000), 1280);
        assert_eq!(a.most(), 2304);
        a.release(y, 200);
        assert_eq!(a.allocate(1024), 128);
    }
}
