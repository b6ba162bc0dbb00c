//! Which leaf to suspect when parts do not go together: what the devices hold of a tensor leaves a gap, or is held in another
//! order than that of the devices. Neither is wrong by itself; beside an op that cannot be justified it says why.

use std::collections::HashSet;

use tpc_ir::{Graph, Inst, Op, Run};

use super::Leaves;

/// Steps back from an op in which a leaf may be at fault.
const STEPS: usize = 12;

/// The nearest leaf that an op is computed from whose parts do not go together, or that goes by another name.
pub(super) fn misfit(programs: &Graph, model: &Graph, leaves: &Leaves, inst: Inst) -> Option<Inst> {
    let mut open = vec![inst];
    let mut seen = HashSet::new();
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for i in open {
            let data = programs.inst(i);
            let own = data
                .results
                .first()
                .map(|&v| programs.value(v).name.as_str());
            let renamed = match &data.op {
                Op::Weight(w) => own.is_some_and(|n| {
                    leaves.by_name.contains_key(&format!("weight {n}")) && n != w.tensor
                }),
                _ => false,
            };
            if renamed || parts(&data.op).is_some() && !goes_together(programs, model, leaves, i) {
                return Some(i);
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

fn parts(op: &Op) -> Option<&Vec<Vec<Run>>> {
    match op {
        Op::Weight(w) => w.parts.as_ref(),
        Op::State(s) => s.parts.as_ref(),
        _ => None,
    }
}

/// Whether all that is held of a leaf makes up the whole, in the order of the devices.
fn goes_together(programs: &Graph, model: &Graph, leaves: &Leaves, leaf: Inst) -> bool {
    let Some(whole) = leaves.get(&programs.inst(leaf).op) else {
        return true;
    };
    let all: Vec<&Op> = programs
        .insts()
        .map(|(_, i)| &i.op)
        .filter(|op| leaves.get(op) == Some(whole))
        .collect();
    let held: Option<Vec<&Vec<Vec<Run>>>> = all.into_iter().map(parts).collect();
    // Where someone holds all of it there are no gaps.
    let Some(held) = held else { return true };
    let dims = &model.value(whole).ty.dims;
    dims.iter().enumerate().all(|(axis, size)| {
        let Some(size) = size.as_const() else {
            return true;
        };
        let starts: Vec<u64> = held
            .iter()
            .filter_map(|p| Some(p.get(axis)?.first()?.start))
            .collect();
        let mut runs: Vec<Run> = held
            .iter()
            .flat_map(|p| p.get(axis).cloned().unwrap_or_default())
            .collect();
        runs.sort_by_key(|r| r.start);
        let end = runs
            .iter()
            .try_fold(0, |end: u64, r| (r.start <= end).then(|| end.max(r.end())));
        end == Some(size) && starts.is_sorted()
    })
}
