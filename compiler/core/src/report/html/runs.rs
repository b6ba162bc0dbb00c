//! Ranges in the page. Equal sets share an entry, and evenly spaced ranges are one run.

use super::numbering::number_of;
use crate::report::plan::Ranges;

/// `[start, len]`, or `[start, len, stride, count]` for `count` ranges of `len` that start `stride` apart.
type Runs = Vec<Vec<u64>>;

/// Distinct sets of ranges per device, in order of first use.
#[derive(Debug, Default)]
pub(super) struct RangeTable(Vec<Vec<Runs>>);

impl RangeTable {
    /// Returns the index of a set of ranges; `None` if the set is empty.
    pub(super) fn number(&mut self, ranges: &Ranges) -> Option<usize> {
        let per_device: Vec<Runs> = match ranges {
            Ranges::Single(r) => r.iter().map(|r| pack(&[*r])).collect(),
            Ranges::Segments(s) => s.iter().map(|s| pack(s)).collect(),
        };
        (!per_device.is_empty()).then(|| number_of(&mut self.0, per_device))
    }

    pub(super) fn into_all(self) -> Vec<Vec<Runs>> {
        self.0
    }
}

fn pack(ranges: &[[u64; 2]]) -> Runs {
    let mut out = Runs::new();
    let mut rest: Vec<[u64; 2]> = ranges.iter().copied().filter(|r| r[1] > 0).collect();
    while let [first, ..] = rest.as_slice() {
        let stride = rest.get(1).map_or(0, |r| r[0].saturating_sub(first[0]));
        let fits = |(i, r): &(usize, &[u64; 2])| {
            r[1] == first[1] && Some(r[0]) == (*i as u64).checked_mul(stride).map(|o| o + first[0])
        };
        let count = rest.iter().enumerate().take_while(fits).count();
        let taken = if stride > 0 && count > 2 {
            out.push(vec![first[0], first[1], stride, count as u64]);
            count
        } else {
            out.push(first.to_vec());
            1
        };
        rest.drain(..taken);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evenly_spaced_ranges_are_one() {
        let even: Vec<[u64; 2]> = (0..5).map(|i| [10 + i * 8, 4]).collect();
        assert_eq!(pack(&even), [vec![10, 4, 8, 5]]);
        let mut odd = even;
        odd.push([100, 4]);
        odd.push([108, 2]);
        assert_eq!(pack(&odd), [vec![10, 4, 8, 5], vec![100, 4], vec![108, 2]]);
        assert_eq!(pack(&[[0, 2], [4, 2]]), [vec![0, 2], vec![4, 2]]);
        assert!(pack(&[[3, 0]]).is_empty());
    }

    #[test]
    fn the_same_ranges_have_one_number() {
        let mut table = RangeTable::default();
        let a = Ranges::Single(vec![[0, 1], [1, 1]]);
        let b = Ranges::Segments(vec![vec![[0, 1]], vec![[1, 1]]]);
        assert_eq!(table.number(&a), Some(0));
        assert_eq!(table.number(&b), Some(0));
        assert_eq!(table.number(&Ranges::Single(Vec::new())), None);
        assert_eq!(table.into_all().len(), 1);
    }
}
