//! Composition of index sets, and its inverse.

use tpc_ir::{Dim, Interval};

use super::pattern::{MAX_INTERVALS, Pattern, common_period, common_unit, units};
use super::repeated::RepeatedPattern;
use super::{IndexSet, NotExpressible};

fn within_unit(minor: &Pattern, major: &Pattern) -> Result<bool, NotExpressible> {
    Ok(major.unit.checked_div(&minor.period()?).is_some())
}

/// Adds a pattern to an index set that selects from other factors.
pub(super) fn insert(indices: &mut IndexSet, pattern: Pattern) -> Result<(), NotExpressible> {
    let mut at = 0;
    while at < indices.len() && within_unit(&indices[at], &pattern)? {
        at += 1;
    }
    if at < indices.len() && !within_unit(&pattern, &indices[at])? {
        return Err(NotExpressible);
    }
    indices.insert(at, pattern);
    // Join the major neighbour first, because this keeps the position of the minor neighbour.
    for major in [at + 1, at] {
        if major > 0
            && major < indices.len()
            && let Some(one) = product(&indices[major - 1], &indices[major])?
        {
            indices[major - 1] = one;
            indices.remove(major);
        }
    }
    Ok(())
}

/// Joins two patterns into one. Returns `None` if their units differ by a symbol or the result is too long.
fn product(minor: &Pattern, major: &Pattern) -> Result<Option<Pattern>, NotExpressible> {
    let Ok(each) = minor.read_in(&minor.unit, &major.unit) else {
        return Ok(None);
    };
    let times = units(&major.unit, &minor.unit)?;
    let size = units(&major.period()?, &minor.unit)?;
    if each.len() as u64 * major.len() > MAX_INTERVALS as u64 {
        return Ok(None);
    }
    let mut intervals = Vec::new();
    for r in major.intervals.iter() {
        for unit in r.start..r.end() {
            intervals.extend(each.iter().map(|e| Interval {
                start: unit * times + e.start,
                len: e.len,
            }));
        }
    }
    Pattern::new(&minor.unit, size, intervals)
}

/// Returns the blocks of `len` units that have selected units, and the selected units, which must be equal in all
/// blocks.
fn blocks_alike(
    intervals: &[Interval],
    len: u64,
) -> Result<(Vec<Interval>, Vec<Interval>), NotExpressible> {
    let mut pattern: Option<Vec<Interval>> = None;
    let mut agree = |own: &[Interval]| match &pattern {
        Some(known) if known != own => Err(NotExpressible),
        Some(_) => Ok(()),
        None => {
            pattern = Some(own.to_vec());
            Ok(())
        }
    };
    let mut blocks: Vec<Interval> = Vec::new();
    let mut own: Vec<Interval> = Vec::new();
    for r in intervals {
        let mut next = r.start;
        while next < r.end() {
            let block = next.checked_div(len).ok_or(NotExpressible)?;
            let last = blocks.last().map(|b| b.end() - 1);
            if last.is_some_and(|l| block < l) {
                return Err(NotExpressible);
            }
            if last != Some(block) {
                if last.is_some() {
                    agree(&own)?;
                }
                own.clear();
                blocks.push(Interval {
                    start: block,
                    len: 1,
                });
            }
            let end = r.end().min((block + 1) * len);
            match own.last_mut() {
                Some(before) if before.end() == next - block * len => before.len += end - next,
                _ => own.push(Interval {
                    start: next - block * len,
                    len: end - next,
                }),
            }
            next = end;
            let more = (r.end() - next) / len;
            if let (true, Some(run)) = (own == [Interval { start: 0, len }], blocks.last_mut()) {
                run.len += more;
                next += more * len;
            }
        }
    }
    if blocks.is_empty() {
        return Err(NotExpressible);
    }
    agree(&own)?;
    pattern.map(|p| (p, blocks)).ok_or(NotExpressible)
}

/// Returns a pattern as a product: a pattern within blocks of `at` elements, and a pattern of blocks.
pub(super) fn split_at(
    whole: &Pattern,
    at: &Dim,
) -> Result<(Option<Pattern>, Option<Pattern>), NotExpressible> {
    let unit = common_unit(&whole.unit, at)?;
    let period = common_period(&whole.period()?, at)?;
    let intervals = whole.read_in(&unit, &period)?;
    let (len, size) = (units(at, &unit)?, units(&period, at)?);
    let (pattern, blocks) = blocks_alike(&intervals, len)?;
    let parts = (
        Pattern::new(&unit, len, pattern)?,
        Pattern::new(at, size, blocks)?,
    );
    // If the parts are not in block order, the selection is not a product.
    let back = match &parts {
        (Some(minor), Some(major)) => product(minor, major)?,
        (one, None) | (None, one) => one.clone(),
    };
    if back.as_ref() == Some(whole) {
        Ok(parts)
    } else {
        Err(NotExpressible)
    }
}

/// Returns the index set of a selection by `inner`, then by `outer`: `x[inner][outer] = x[compose(inner, outer)]`.
pub(in crate::prove) fn compose(
    inner: &[Pattern],
    outer: &[Pattern],
) -> Result<IndexSet, NotExpressible> {
    let mut all = inner.to_vec();
    // Major patterns first: selecting from a factor does not move more minor factors.
    for pattern in outer.iter().rev() {
        let mut pattern = Some(pattern.clone());
        let mut out = IndexSet::new();
        let mut rest = all.into_iter();
        for p in rest.by_ref() {
            let Some(q) = pattern.clone() else {
                out.push(p);
                continue;
            };
            if p.unit.checked_div(&q.period()?).is_some() {
                // All remaining patterns are more major.
                out.push(p);
                continue;
            }
            let kept = p.selected()?;
            if !kept.is_zero()
                && let Some(times) = q.unit.checked_div(&kept)
            {
                let unit = times.checked_mul(&p.period()?).ok_or(NotExpressible)?;
                pattern = Some(Pattern { unit, ..q });
                out.push(p);
                continue;
            }
            if kept.is_zero() {
                out.push(p);
                pattern = None;
                continue;
            }
            let unit = common_unit(&p.unit, &q.unit)?;
            let period = common_period(&kept, &q.period()?)?;
            let times = period.checked_div(&kept).ok_or(NotExpressible)?;
            let whole = p.period()?.checked_mul(&times).ok_or(NotExpressible)?;
            let selected = q.read_in(&unit, &period)?;
            let size = units(&whole, &unit)?;
            pattern = Pattern::new(&unit, size, RepeatedPattern::new(&p, &unit)?.at(&selected)?)?;
        }
        if let Some(q) = pattern {
            insert(&mut out, q)?;
        }
        all = out;
    }
    Ok(all)
}

/// Returns the index set that selects `indices` from the selection `of`: `compose(of, result) == indices`.
pub(in crate::prove) fn quotient(
    of: &[Pattern],
    indices: &[Pattern],
) -> Result<IndexSet, NotExpressible> {
    let mut left = indices.to_vec();
    // Pairs of a pattern and the number of more minor factors of `of`.
    let mut found: Vec<(usize, Pattern)> = Vec::new();
    for (i, o) in of.iter().enumerate() {
        let mut same = None;
        for (i, p) in left.iter().enumerate() {
            if !within_unit(p, o)? && !within_unit(o, p)? {
                same = Some(i);
                break;
            }
        }
        let p = left.remove(same.ok_or(NotExpressible)?);
        let unit = common_unit(&p.unit, &o.unit)?;
        let period = common_period(&p.period()?, &o.period()?)?;
        let outer = RepeatedPattern::new(o, &unit)?;
        // A cheap check: a candidate without the first element cannot have the others.
        if let Some(first) = p.intervals.first() {
            let index = units(&p.unit, &unit)?.checked_mul(first.start);
            outer.positions(&[Interval {
                start: index.ok_or(NotExpressible)?,
                len: 1,
            }])?;
        }
        let at = outer.positions(&p.read_in(&unit, &period)?)?;
        let periods = units(&period, &o.period()?)?;
        let size = outer.count().checked_mul(periods);
        let size = size.ok_or(NotExpressible)?;
        found.extend(Pattern::new(&unit, size, at)?.map(|p| (i, p)));
    }
    found.extend(left.into_iter().map(|p| (of.len(), p)));
    let mut out = IndexSet::new();
    for (minor, mut p) in found {
        for o in of[..minor].iter().rev() {
            if o.len() > 0
                && let Some(times) = p.unit.checked_div(&o.period()?)
            {
                p.unit = times.checked_mul(&o.selected()?).ok_or(NotExpressible)?;
            }
        }
        insert(&mut out, p)?;
    }
    if compose(of, &out)? == indices {
        Ok(out)
    } else {
        Err(NotExpressible)
    }
}
