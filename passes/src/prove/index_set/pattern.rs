use std::borrow::Cow;
use std::rc::Rc;

use tpc_ir::{Dim, Interval};

use super::NotExpressible;
use super::intervals::{clip, is_ascending};
use crate::gcd::gcd;

/// The maximum number of intervals of a pattern; longer patterns are too expensive.
pub(super) const MAX_INTERVALS: usize = 1 << 14;

/// A periodic selection. Of every `unit · size` consecutive elements, it selects those with index / `unit` in
/// `intervals`, in the order of the intervals.
///
/// Always in lowest terms ([`Pattern::new`]), so equal selections compare equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::prove) struct Pattern {
    /// Consecutive elements selected together.
    pub(in crate::prove) unit: Dim,
    /// The period, in units.
    pub(in crate::prove) size: u64,
    /// The selected units of each period.
    pub(in crate::prove) intervals: Rc<[Interval]>,
}

impl Pattern {
    /// Returns the pattern in lowest terms; `None` if it selects all elements.
    pub(in crate::prove) fn new(
        unit: &Dim,
        size: u64,
        intervals: impl IntoIterator<Item = Interval>,
    ) -> Result<Option<Pattern>, NotExpressible> {
        let mut merged: Vec<Interval> = Vec::new();
        for r in intervals {
            match merged.last_mut() {
                _ if r.len == 0 => {}
                Some(last) if last.end() == r.start => last.len += r.len,
                _ => merged.push(r),
            }
        }
        if merged.len() > MAX_INTERVALS || merged.iter().any(|r| r.end() > size) {
            return Err(NotExpressible);
        }
        let (mut size, mut intervals) = (size, merged);
        while let Some((part, of_part)) = shorter_period(size, &intervals) {
            (size, intervals) = (part, of_part);
        }
        if let [all] = intervals.as_slice()
            && all.start == 0
            && all.len == size
        {
            return Ok(None);
        }
        let common = intervals
            .iter()
            .fold(size, |g, r| gcd(gcd(g, r.start), r.len))
            .max(1);
        for r in &mut intervals {
            r.start /= common;
            r.len /= common;
        }
        let unit = unit.checked_mul(&common.into()).ok_or(NotExpressible)?;
        let size = size / common;
        Ok(Some(Pattern {
            unit,
            size,
            intervals: intervals.into(),
        }))
    }

    pub(in crate::prove) fn len(&self) -> u64 {
        self.intervals.iter().map(|r| r.len).sum()
    }

    pub(in crate::prove) fn period(&self) -> Result<Dim, NotExpressible> {
        self.unit
            .checked_mul(&self.size.into())
            .ok_or(NotExpressible)
    }

    pub(super) fn selected(&self) -> Result<Dim, NotExpressible> {
        self.unit
            .checked_mul(&self.len().into())
            .ok_or(NotExpressible)
    }

    /// Returns the number of selected elements among `size`, a multiple of the period.
    pub(in crate::prove) fn count(&self, size: &Dim) -> Result<Dim, NotExpressible> {
        let periods = size.checked_div(&self.period()?).ok_or(NotExpressible)?;
        periods.checked_mul(&self.selected()?).ok_or(NotExpressible)
    }

    /// Returns the selected indices in a period of `period`, in units of `unit`.
    pub(in crate::prove) fn refine(
        &self,
        unit: &Dim,
        period: &Dim,
    ) -> Result<Vec<Interval>, NotExpressible> {
        self.read_in(unit, period).map(Cow::into_owned)
    }

    /// Returns [`Self::refine`], borrowed if unit and period are the pattern's own.
    pub(super) fn read_in(
        &self,
        unit: &Dim,
        period: &Dim,
    ) -> Result<Cow<'_, [Interval]>, NotExpressible> {
        if *unit == self.unit && *period == self.period()? {
            return Ok(Cow::Borrowed(&self.intervals));
        }
        let fine = units(&self.unit, unit)?;
        let times = units(period, &self.period()?)?;
        if (times as usize).saturating_mul(self.intervals.len()) > MAX_INTERVALS {
            return Err(NotExpressible);
        }
        let size = self.size.checked_mul(fine).ok_or(NotExpressible)?;
        let mut out = Vec::with_capacity(self.intervals.len() * times as usize);
        for t in 0..times {
            let base = t.checked_mul(size).ok_or(NotExpressible)?;
            out.extend(self.intervals.iter().map(|r| Interval {
                start: base + r.start * fine,
                len: r.len * fine,
            }));
        }
        Ok(Cow::Owned(out))
    }

    pub(in crate::prove) fn scaled(&self, by: &Dim) -> Result<Pattern, NotExpressible> {
        let unit = self.unit.checked_mul(by).ok_or(NotExpressible)?;
        Ok(Pattern {
            unit,
            ..self.clone()
        })
    }
}

/// Returns the size and intervals of a shorter period, if the pattern repeats within its period.
fn shorter_period(size: u64, intervals: &[Interval]) -> Option<(u64, Vec<Interval>)> {
    let total: u64 = intervals.iter().map(|r| r.len).sum();
    if total == 0 || !is_ascending(intervals) {
        return None;
    }
    let of_part = |start: u64, len: u64| {
        let from = intervals.partition_point(|r| r.end() <= start);
        let to = intervals.partition_point(|r| r.start < start + len);
        clip(&intervals[from..to.max(from)], start, len)
    };
    let both = gcd(size, total);
    (2..=both.min(intervals.len() as u64 + 1))
        .filter(|&k| both.is_multiple_of(k))
        .find_map(|k| {
            let part = size / k;
            let first = of_part(0, part);
            let alike = (1..k).all(|i| of_part(i * part, part) == first);
            alike.then_some((part, first))
        })
}

pub(in crate::prove) fn units(size: &Dim, unit: &Dim) -> Result<u64, NotExpressible> {
    let quotient = size.checked_div(unit).and_then(|d| d.as_const());
    quotient.ok_or(NotExpressible)
}

/// Returns the largest common divisor; both must be constants or multiples of one symbol.
pub(in crate::prove) fn common_unit(a: &Dim, b: &Dim) -> Result<Dim, NotExpressible> {
    if a.checked_div(b).is_some() {
        return Ok(b.clone());
    }
    if b.checked_div(a).is_some() {
        return Ok(a.clone());
    }
    let (m, n) = (a.content(), b.content());
    let monic = a.checked_div(&m.into()).ok_or(NotExpressible)?;
    if b.checked_div(&n.into()).as_ref() != Some(&monic) {
        return Err(NotExpressible);
    }
    monic.checked_mul(&gcd(m, n).into()).ok_or(NotExpressible)
}

pub(in crate::prove) fn common_period(a: &Dim, b: &Dim) -> Result<Dim, NotExpressible> {
    let unit = common_unit(a, b)?;
    let times = a.checked_div(&unit).ok_or(NotExpressible)?;
    times.checked_mul(b).ok_or(NotExpressible)
}
