//! Arithmetic on lists of intervals.
//!
//! `lower/intervals.rs` duplicates this code on purpose: the proof checks lowering and must not share its errors.

use tpc_ir::Interval;

/// Returns the selected indices among `len` indices from `start`, relative to `start`.
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

pub(super) fn is_ascending(intervals: &[Interval]) -> bool {
    intervals.windows(2).all(|w| w[0].end() <= w[1].start)
}
