//! The infinite list of a pattern's indices. Queries take the same time in every period.

use tpc_ir::{Dim, Interval};

use super::NotExpressible;
use super::intervals::is_ascending;
use super::pattern::{MAX_INTERVALS, Pattern, units};

/// A periodically repeated pattern, in a smaller unit than the pattern's own.
pub(super) struct RepeatedPattern<'a> {
    intervals: &'a [Interval],
    /// The number of selected coarse units before each interval.
    firsts: Vec<u64>,
    ascending: bool,
    /// The pattern's unit, in the requested units.
    fine: u64,
    size: u64,
    count: u64,
}

impl<'a> RepeatedPattern<'a> {
    pub(super) fn new(
        pattern: &'a Pattern,
        unit: &Dim,
    ) -> Result<RepeatedPattern<'a>, NotExpressible> {
        let fine = units(&pattern.unit, unit)?;
        let scaled = |n: u64| n.checked_mul(fine).ok_or(NotExpressible);
        let mut at = 0;
        let firsts = pattern.intervals.iter().map(|r| {
            at += r.len;
            at - r.len
        });
        Ok(RepeatedPattern {
            intervals: &pattern.intervals,
            firsts: firsts.collect(),
            ascending: is_ascending(&pattern.intervals),
            fine,
            size: scaled(pattern.size)?,
            count: scaled(pattern.len())?,
        })
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Returns an index's position in the list, and the number of consecutive indices from there; `None` if not
    /// selected.
    fn position(&self, index: u64) -> Option<(u64, u64)> {
        let (period, within) = (index / self.size, index % self.size);
        let coarse = within / self.fine;
        let holds = |r: &Interval| (r.start..r.end()).contains(&coarse);
        let k = match self.ascending {
            true => self.intervals.partition_point(|r| r.end() <= coarse),
            false => self.intervals.iter().position(holds)?,
        };
        let r = self.intervals.get(k).filter(|r| holds(r))?;
        let into = within - r.start * self.fine;
        let position = period * self.count + self.firsts[k] * self.fine + into;
        Some((position, r.len * self.fine - into))
    }

    fn index(&self, position: u64) -> (u64, u64) {
        let (period, within) = (position / self.count, position % self.count);
        let coarse = within / self.fine;
        let k = self.firsts.partition_point(|&first| first <= coarse) - 1;
        let (r, into) = (self.intervals[k], within - self.firsts[k] * self.fine);
        let index = period * self.size + r.start * self.fine + into;
        (index, r.len * self.fine - into)
    }

    pub(super) fn positions(&self, indices: &[Interval]) -> Result<Vec<Interval>, NotExpressible> {
        pieces(indices, |index| self.position(index))
    }

    pub(super) fn at(&self, positions: &[Interval]) -> Result<Vec<Interval>, NotExpressible> {
        pieces(positions, |position| Some(self.index(position)))
    }
}

/// Maps numbers, each with a run of successors, and returns the mapped intervals.
fn pieces(
    of: &[Interval],
    each: impl Fn(u64) -> Option<(u64, u64)>,
) -> Result<Vec<Interval>, NotExpressible> {
    let mut out = Vec::with_capacity(of.len());
    for r in of {
        let mut next = r.start;
        while next < r.end() {
            if out.len() > 2 * MAX_INTERVALS {
                return Err(NotExpressible);
            }
            let (start, alike) = each(next).ok_or(NotExpressible)?;
            let len = alike.min(r.end() - next);
            out.push(Interval { start, len });
            next += len;
        }
    }
    Ok(out)
}
