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
    let mut out = Vec::new();
    for p in positions {
        let mut at = 0;
        for r in intervals {
            let from = p.start.clamp(at, at + r.len);
            let to = p.end().clamp(at, at + r.len);
            if from < to {
                out.push(Interval {
                    start: r.start + from - at,
                    len: to - from,
                });
            }
            at += r.len;
        }
    }
    out
}

/// The positions of the indices `inner` in the list that `outer` spells out; each of them must be in it.
pub(super) fn positions(
    outer: &[Interval],
    inner: &[Interval],
) -> Result<Vec<Interval>, NotExpressible> {
    let mut out = Vec::new();
    for i in inner {
        let mut next = i.start;
        while next < i.end() {
            let mut at = 0;
            let mut found = None;
            for o in outer {
                if (o.start..o.end()).contains(&next) {
                    found = Some((at + next - o.start, o.end().min(i.end()) - next));
                    break;
                }
                at += o.len;
            }
            let (start, len) = found.ok_or(NotExpressible)?;
            out.push(Interval { start, len });
            next += len;
        }
    }
    Ok(out)
}
