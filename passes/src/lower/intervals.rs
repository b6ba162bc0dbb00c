//! Arithmetic on intervals of indices.
//!
//! `prove/index_set/` duplicates this code on purpose: the proof checks lowering and must not share its errors.

use tpc_ir::{AxisTree, ClassData, Interval};

pub(super) fn overlaps(tree: &AxisTree, classes: &[ClassData]) -> bool {
    let mut refs = Vec::new();
    tree.classes(&mut refs);
    refs.iter()
        .any(|c| classes[c.class.index()].overlaps(c.div))
}

pub(super) fn subtract(intervals: &[Interval], taken: &[Interval]) -> Vec<Interval> {
    let mut left = intervals.to_vec();
    for t in taken {
        left = left
            .iter()
            .flat_map(|r| {
                let before = Interval::from_bounds(r.start, r.end().min(t.start));
                let after = Interval::from_bounds(r.start.max(t.end()), r.end());
                if t.end() <= r.start || t.start >= r.end() {
                    [*r, Interval::default()]
                } else {
                    [before, after]
                }
            })
            .filter(|r| r.len > 0)
            .collect();
    }
    left
}

pub(super) fn at_positions(intervals: &[Interval], positions: Interval) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut at = 0;
    for r in intervals {
        let from = positions.start.clamp(at, at + r.len);
        let to = positions.end().clamp(at, at + r.len);
        if from < to {
            out.push(Interval {
                start: r.start + from - at,
                len: to - from,
            });
        }
        at += r.len;
    }
    out
}

pub(super) fn positions(outer: &[Interval], inner: &[Interval]) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut at = 0;
    for o in outer {
        for i in inner
            .iter()
            .filter(|i| i.start >= o.start && i.end() <= o.end() && i.len > 0)
        {
            out.push(Interval {
                start: at + i.start - o.start,
                len: i.len,
            });
        }
        at += o.len;
    }
    out
}
