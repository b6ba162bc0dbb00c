//! Arithmetic on lists of intervals.
//!
//! Lowering has the same arithmetic in `lower/intervals.rs`, on purpose: the proof checks the results of
//! lowering, and shared code would share its errors. Neither may call the other.

use tpc_ir::Interval;

/// Returns the selected indices among the `len` indices from `start` on, counted from `start`.
pub(in crate::prove) fn clip(intervals: &[Interval], start: u64, len: u64) -> Vec<Interval> {
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

/// True if intervals follow one another in the order of their indices.
pub(super) fn is_ascending(intervals: &[Interval]) -> bool {
    intervals.windows(2).all(|w| w[0].end() <= w[1].start)
}
