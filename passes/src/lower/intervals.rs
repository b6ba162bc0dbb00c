//! Arithmetic on runs of indices.

use tpc_ir::{AxisTree, ClassData, Interval};

pub(super) fn overlaps(tree: &AxisTree, classes: &[ClassData]) -> bool {
    let mut refs = Vec::new();
    tree.classes(&mut refs);
    refs.iter()
        .any(|c| classes[c.class.index()].overlaps(c.div))
}

/// The indices of `runs` that are not among `taken`.
pub(super) fn without(runs: &[Interval], taken: &[Interval]) -> Vec<Interval> {
    let mut left = runs.to_vec();
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

/// The indices at these positions of the list that `runs` make.
pub(super) fn nth(runs: &[Interval], positions: Interval) -> Vec<Interval> {
    let mut out = Vec::new();
    let mut at = 0;
    for r in runs {
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

/// Where the indices `inner` stand among the packed indices `outer`, which hold them all.
pub(super) fn within(outer: &[Interval], inner: &[Interval]) -> Vec<Interval> {
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
