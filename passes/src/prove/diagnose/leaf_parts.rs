//! Finds the suspect leaf: the devices' parts of the leaf have a gap or are not in device order. Both are valid, but
//! are a likely cause if a later op is unjustified.

use std::collections::HashSet;

use tpc_ir::{Graph, Inst, Interval, Op};

use crate::prove::leaves::Leaves;

const STEPS: usize = 12;

/// The maximum number of leaves to check; each is compared with all others.
const LEAVES: usize = 256;

/// Returns the nearest ancestor leaf whose parts do not fit together, or whose name differs from its tensor's.
pub(in crate::prove) fn suspect_leaf(
    programs: &Graph,
    model: &Graph,
    leaves: &Leaves<'_>,
    inst: Inst,
) -> Option<Inst> {
    let mut open = vec![inst];
    let mut seen = HashSet::new();
    let mut leaves_left = LEAVES;
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for i in open {
            let data = programs.inst(i);
            let own = data
                .results
                .first()
                .map(|&v| programs.value(v).name.as_str());
            let renamed = match &data.op {
                Op::Weight(w) => own.is_some_and(|n| leaves.has_weight(n) && n != w.tensor),
                _ => false,
            };
            if renamed {
                return Some(i);
            }
            if data.op.parts().is_some() {
                leaves_left = leaves_left.saturating_sub(1);
            }
            if leaves_left > 0
                && data.op.parts().is_some()
                && let Some(odd) = find_odd_leaf(programs, model, leaves, i)
            {
                return Some(odd);
            }
            for &v in &data.operands {
                let def = programs.value(v).def.0;
                if seen.insert(def) {
                    next.push(def);
                }
            }
        }
        open = next;
    }
    None
}

type Parts = [Vec<Interval>];

/// Returns the leaf that does not fit the other parts of its tensor; `None` if the parts are complete and in device
/// order.
fn find_odd_leaf(programs: &Graph, model: &Graph, leaves: &Leaves<'_>, leaf: Inst) -> Option<Inst> {
    let whole = leaves.get(&programs.inst(leaf).op)?;
    let of_whole = programs
        .insts()
        .filter(|(_, i)| leaves.get(&i.op) == Some(whole));
    // A whole tensor on one device leaves no gaps.
    let held: Option<Vec<(Inst, &Parts)>> = of_whole
        .map(|(i, data)| Some((i, data.op.parts()?)))
        .collect();
    let held = held?;
    let dims = &model.value(whole).ty.dims;
    dims.iter().enumerate().find_map(|(axis, size)| {
        let size = size.as_const()?;
        let mine = |p: &Parts| p.get(axis).cloned().unwrap_or_default();
        let ends: Vec<(Inst, u64, u64)> = held
            .iter()
            .filter_map(|&(i, p)| Some((i, mine(p).first()?.start, mine(p).last()?.end())))
            .collect();
        let mut intervals: Vec<Interval> = held.iter().flat_map(|(_, p)| mine(p)).collect();
        intervals.sort_by_key(|r| r.start);
        let end = intervals
            .iter()
            .try_fold(0, |end: u64, r| (r.start <= end).then(|| end.max(r.end())));
        if end == Some(size) && ends.is_sorted_by_key(|&(_, start, _)| start) {
            return None;
        }
        // The odd leaf touches the fewest neighbours.
        let meets = |k: usize| {
            let (_, start, end) = ends[k];
            let before = if k == 0 {
                start == 0
            } else {
                ends[k - 1].2 == start
            };
            let after = if k + 1 == ends.len() {
                end == size
            } else {
                ends[k + 1].1 == end
            };
            usize::from(before) + usize::from(after)
        };
        let odd = (0..ends.len()).min_by_key(|&k| (meets(k), ends[k].0 != leaf));
        Some(odd.map_or(leaf, |k| ends[k].0))
    })
}
