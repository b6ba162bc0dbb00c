//! Computes the small size of one factor.
//!
//! A *unit* is the number of indices that form whole quantisation blocks in every tensor with this factor. Boundaries
//! of device ranges keep their offset within the unit. One or a few units remain between two boundaries, more if the
//! large model has more. A range that ends at a block, within a block, at a head or within a group of heads still does
//! so. Equal ranges stay equal, and different ranges stay different.

use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of additional units in larger gaps between boundaries.
const UNEVEN: u64 = 2;

#[derive(Clone, Debug)]
pub(super) struct Constraint {
    pub(super) size: u64,
    pub(super) unit: u64,
    /// Elements per index. Boundaries are counted in elements.
    pub(super) minor: u64,
    /// Boundaries in elements.
    pub(super) bounds: BTreeSet<u64>,
    /// Minimum number of indices.
    pub(super) least: u64,
    /// Number of indices that each part should keep.
    pub(super) wanted: u64,
    pub(super) pinned: Option<u64>,
    pub(super) fixed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SmallSize {
    pub(super) size: u64,
    pub(super) minor: u64,
    pub(super) bounds: BTreeMap<u64, u64>,
}

impl Constraint {
    /// Computes the new size with `base` units between boundaries.
    fn with_base(&self, base: u64) -> SmallSize {
        let unit = self.unit * self.minor;
        let mut gaps: BTreeSet<u64> = BTreeSet::new();
        let mut before = 0;
        for b in &self.bounds {
            gaps.insert(b / unit - before);
            before = b / unit;
        }
        gaps.remove(&0);
        let left = |gap: u64| {
            let rank = gaps.range(..gap).count() as u64;
            gap.min(base + rank.min(UNEVEN))
        };
        let (mut before, mut at) = (0, 0);
        let mut bounds = BTreeMap::new();
        for &b in &self.bounds {
            at += left(b / unit - before);
            before = b / unit;
            bounds.insert(b, at * unit + b % unit);
        }
        SmallSize {
            size: bounds.last_key_value().map_or(0, |(_, &n)| n) / self.minor,
            minor: self.minor,
            bounds,
        }
    }

    pub(super) fn small(&self) -> SmallSize {
        if self.fixed || self.pinned.is_some() {
            return SmallSize {
                size: self.pinned.filter(|_| !self.fixed).unwrap_or(self.size),
                minor: self.minor,
                bounds: self.bounds.iter().map(|&b| (b, b)).collect(),
            };
        }
        let mut base = self.wanted.div_ceil(self.unit).max(1);
        loop {
            let small = self.with_base(base);
            if small.size >= self.least.min(self.size) {
                return small;
            }
            base += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn constraint(size: u64, unit: u64, inner: &[u64]) -> Constraint {
        Constraint {
            size,
            unit,
            minor: 1,
            bounds: inner.iter().copied().chain([0, size]).collect(),
            least: 1,
            wanted: 2,
            pinned: None,
            fixed: false,
        }
    }

    fn ends(d: &Constraint) -> Vec<u64> {
        d.small().bounds.into_values().collect()
    }

    #[test]
    fn equal_parts_stay_equal_and_uneven_ones_uneven() {
        assert_eq!(ends(&constraint(64, 1, &[16, 32, 48])), [0, 2, 4, 6, 8]);
        assert_eq!(ends(&constraint(2048, 256, &[1024])), [0, 256, 512]);
        assert_eq!(ends(&constraint(10, 1, &[3, 6])), [0, 2, 4, 7]);
        assert_eq!(ends(&constraint(9, 1, &[0, 9])), [0, 2]);
    }

    #[test]
    fn a_boundary_stays_where_it_is_in_its_block() {
        let d = constraint(14336, 256, &[4779, 9558]);
        let small = d.small();
        for (old, new) in small.bounds {
            assert_eq!(old % 256, new % 256);
            assert!(new <= old);
        }
        assert_eq!(ends(&constraint(512, 256, &[300, 400])), [0, 300, 400, 512]);
    }

    #[test]
    fn groups_of_heads_are_cut_where_they_were() {
        // Two KV heads with eight queries each on three devices.
        let d = Constraint {
            minor: 8,
            ..constraint(2, 1, &[])
        };
        let bounds = BTreeSet::from([0, 5, 10, 16]);
        let small = Constraint { bounds, ..d }.small();
        assert_eq!(small.size, 2);
        assert!(small.bounds.iter().all(|(a, b)| a == b));
    }

    #[test]
    fn what_is_asked_for_remains() {
        let least = |least| Constraint {
            least,
            ..constraint(128, 1, &[64])
        };
        assert_eq!(least(9).small().size, 10);
        assert_eq!(least(500).small().size, 128);
        let fixed = Constraint {
            fixed: true,
            pinned: Some(3),
            ..least(1)
        };
        assert_eq!(fixed.small().size, 128);
    }
}
