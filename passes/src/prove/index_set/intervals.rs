//! Arithmetic on lists of intervals.
//!
//! Lowering has the same arithmetic in `lower/intervals.rs`, on purpose: the proof checks what lowering makes, and an
//! error in shared code would be an error of both. Neither may call the other.

use tpc_ir::Interval;

use super::NotExpressible;

/// The indices that lie in the `len` indices from `start` on, counted from there.
pub(in crate::prove) fn clipped(intervals: &[Interval], start: u64, len: u64) -> Vec<Interval> {
    let mut out: Vec<Interval> = Vec::new();
    for r in intervals {
        let (from, to) = (r.start.max(start), r.end().min(start + len));
        if from < to {
            match out.last_mut() {
                Some(last) if last.end() == from - start => last.len += to - from,
                _ => out.push(Interval {
                    start: from - start,
                    len: to - from,
                }),
            }
        }
    }
    out
}

/// The indices at these positions of the list that `intervals` spell out.
pub(super) fn at_positions(intervals: &[Interval], positions: &[Interval]) -> Vec<Interval> {
    let firsts = firsts(intervals);
    let mut out = Vec::new();
    for p in positions {
        // The last interval that begins at or before the position, and those behind it.
        let from = firsts
            .partition_point(|&at| at <= p.start)
            .saturating_sub(1);
        for (r, &at) in intervals.iter().zip(&firsts).skip(from) {
            if at >= p.end() {
                break;
            }
            let from = p.start.clamp(at, at + r.len);
            let to = p.end().clamp(at, at + r.len);
            if from < to {
                out.push(Interval {
                    start: r.start + from - at,
                    len: to - from,
                });
            }
        }
    }
    out
}

/// The position of the first index of each interval.
fn firsts(intervals: &[Interval]) -> Vec<u64> {
    let mut at = 0;
    let first = |r: &Interval| {
        let first = at;
        at += r.len;
        first
    };
    intervals.iter().map(first).collect()
}

/// Whether intervals follow one another in the order of their indices.
pub(super) fn is_ascending(intervals: &[Interval]) -> bool {
    intervals.windows(2).all(|w| w[0].end() <= w[1].start)
}

/// The positions of the indices `inner` in the list that `outer` spells out; each of them must be in it.
pub(super) fn positions(
    outer: &[Interval],
    inner: &[Interval],
) -> Result<Vec<Interval>, NotExpressible> {
    let firsts = firsts(outer);
    let ascending = is_ascending(outer);
    let mut out = Vec::new();
    for i in inner {
        let mut next = i.start;
        while next < i.end() {
            let holds = |o: &Interval| (o.start..o.end()).contains(&next);
            let found = match ascending {
                true => Some(outer.partition_point(|o| o.end() <= next)),
                false => outer.iter().position(holds),
            };
            let found = found.and_then(|k| Some((outer.get(k)?, firsts[k])));
            let (o, at) = found.filter(|(o, _)| holds(o)).ok_or(NotExpressible)?;
            let (start, len) = (at + next - o.start, o.end().min(i.end()) - next);
            out.push(Interval { start, len });
            next += len;
        }
    }
    Ok(out)
}
