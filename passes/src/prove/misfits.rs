//! Which op that moves values to suspect when another cannot be justified: one that takes another value than its namesakes on
//! other devices, in another order, or leaves a gap between what they take; or one whose value goes by another name. Names prove nothing; beside an op that cannot be justified they say why.

use std::collections::{BTreeMap, HashSet};

use tpc_ir::{Dim, Inst, Interval, Op, Place, RANK, Value};

use super::pick::on_axes;
use super::region::Region;
use super::rules::zeros::is_empty;

/// Steps back from an op in which another may be at fault.
const STEPS: usize = 8;

/// The nearest slice, copy or concatenation before an op that does not go with its namesakes, or the first of those that
/// move the same one after another. What is computed right is not looked behind.
pub(super) fn misfit(region: &Region<'_>, inst: Inst) -> Option<Inst> {
    let programs = region.task.programs;
    let inside: HashSet<Inst> = region.task.of_programs.iter().copied().collect();
    let mut open = vec![inst];
    let mut seen = HashSet::new();
    let mut found = None;
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for i in open {
            let data = programs.inst(i);
            let fits = match data.op {
                Op::Slice(_) => goes_together(region, i),
                Op::Copy(_) => in_order(region, i),
                Op::Concat(_) => is_sorted(region, data.results[0]),
                _ => true,
            };
            if !fits && found.is_none() {
                // From here on only what moved it before.
                seen.clear();
                next.clear();
            }
            if !fits {
                found = Some(i);
            }
            let nothing = |&v: &Value| is_empty(&programs.value(v).ty);
            let right =
                |v: &Value| nothing(v) || region.is_justified(*v) && region.has_its_name(*v);
            let is_right = || {
                data.results.iter().all(right) && in_order(region, i) && goes_together(region, i)
            };
            if i != inst && !data.op.is_movement() && (found.is_some() || is_right()) {
                continue;
            }
            for &v in &data.operands {
                let def = programs.value(v).def.0;
                if inside.contains(&def) && seen.insert(def) {
                    next.push(def);
                }
            }
            if !fits {
                break;
            }
        }
        open = next;
    }
    found
}

/// The first of the ops before this one that gives a value of the model, but of another name.
pub(super) fn misnamed(region: &Region<'_>, inst: Inst) -> Option<Inst> {
    let programs = region.task.programs;
    let other = |v: &Value| {
        let data = programs.value(*v);
        let known = region.programs.contains_key(v) && region.is_justified(*v);
        known && !is_empty(&data.ty) && !region.has_its_name(*v)
    };
    let computes = |op: &Op| !op.is_movement() && !op.is_leaf();
    let mut open = vec![inst];
    let mut found: Option<Inst> = None;
    for _ in 0..STEPS / 2 {
        let operands = open.iter().flat_map(|&i| &programs.inst(i).operands);
        let mut next: Vec<Inst> = operands.map(|&v| programs.value(v).def.0).collect();
        next.retain(|i| region.task.of_programs.contains(i));
        next.sort_unstable();
        next.dedup();
        for &i in &next {
            let data = programs.inst(i);
            if computes(&data.op) && data.results.iter().any(other) {
                found = Some(found.map_or(i, |f| f.min(i)));
            }
        }
        open = next;
    }
    found
}

/// Whether what a value has of the model is in the model's order.
fn is_sorted(region: &Region<'_>, v: Value) -> bool {
    let all = taken(region, v);
    let sorted = |t: &Taken| {
        t.axes
            .iter()
            .flatten()
            .all(|r| r.is_sorted_by_key(|r| r.start))
    };
    all.is_empty() || all.iter().any(sorted)
}

/// What other places have under the name of an op's result, where as many of its kind and name came before.
fn namesakes(region: &Region<'_>, inst: Inst) -> Vec<Value> {
    let programs = region.task.programs;
    let kind = programs.inst(inst).op.name();
    let result = |i: Inst| programs.inst(i).results[0];
    let own = programs.value(result(inst));
    let mut before: BTreeMap<Place, Vec<Inst>> = BTreeMap::new();
    for &i in region.task.of_programs {
        let value = programs.inst(i).results.first().map(|&v| programs.value(v));
        if programs.inst(i).op.name() == kind
            && let Some(value) = value.filter(|v| v.name == own.name)
        {
            before.entry(value.place).or_default().push(i);
        }
    }
    let ordinal = before
        .get(&own.place)
        .and_then(|of| of.iter().position(|&i| i == inst));
    let others = before.iter().filter(|(place, _)| **place != own.place);
    let same = others.filter_map(|(_, of)| of.get(ordinal?));
    // What is cut up in one place for others is of one value there.
    let operands = &programs.inst(inst).operands;
    let here = before.get(&own.place).into_iter().flatten();
    let here = here.filter(|&&i| i != inst && programs.inst(i).operands == *operands);
    same.chain(here).map(|&i| result(i)).collect()
}

/// Whether the devices have parts in their order.
fn in_order(region: &Region<'_>, inst: Inst) -> bool {
    let programs = region.task.programs;
    let Some(&own) = programs.inst(inst).results.first() else {
        return true;
    };
    let mut all = namesakes(region, inst);
    all.push(own);
    all.retain(|&v| matches!(programs.value(v).place, Place::Device(_)));
    all.sort_by_key(|&v| programs.value(v).place);
    let all = all.into_iter().map(|v| taken(region, v));
    let all: Vec<Vec<Taken>> = all.filter(|t| !t.is_empty()).collect();
    let Some(first) = all.first() else {
        return true;
    };
    first.iter().map(|t| t.of).all(|of| {
        (0..RANK).all(|a| {
            let start = |t: &Taken| t.axes[a].as_ref()?.first().map(|r| r.start);
            let of_this = all.iter().filter_map(|n| n.iter().find(|t| t.of == of));
            let starts: Vec<u64> = of_this.filter_map(start).collect();
            starts.is_sorted()
        })
    })
}

/// What there is of a value of the model: per axis the indices, where not all and constant.
struct Taken {
    of: Value,
    axes: [Option<Vec<Interval>>; RANK],
}

fn taken(region: &Region<'_>, v: Value) -> Vec<Taken> {
    let forms = region.parts_of_model(v).into_iter();
    let taken = forms.filter_map(|(of, picks)| {
        let dims = &region.task.model.value(of).ty.dims;
        let picks = on_axes(&picks, dims).ok()?;
        let mut axes = [const { None }; RANK];
        for (a, pick) in picks.iter().enumerate() {
            if let Some(p) = pick {
                axes[a] = p.refined(&Dim::ONE, &dims[a]).ok();
            }
        }
        Some(Taken { of, axes })
    });
    taken.collect()
}

/// Whether what an op gives and its namesakes are of one value and leave no gap there.
fn goes_together(region: &Region<'_>, inst: Inst) -> bool {
    let programs = region.task.programs;
    let Some(&result) = programs.inst(inst).results.first() else {
        return true;
    };
    let own = taken(region, result);
    if own.is_empty() {
        return is_empty(&programs.value(result).ty);
    }
    let namesakes: Vec<Vec<Taken>> = namesakes(region, inst)
        .into_iter()
        .map(|v| taken(region, v))
        .filter(|t| !t.is_empty())
        .collect();
    if namesakes.is_empty() {
        return region.has_its_name(result);
    }
    let of: HashSet<Value> = own.iter().map(|t| t.of).collect();
    let shared = of
        .iter()
        .filter(|&&of| namesakes.iter().all(|n| n.iter().any(|t| t.of == of)));
    let mut shared = shared.peekable();
    if shared.peek().is_none() {
        // The others have a value in common that this one is not of.
        let first = namesakes.first().into_iter().flatten().map(|t| t.of);
        return !first
            .into_iter()
            .any(|of| namesakes.iter().all(|n| n.iter().any(|t| t.of == of)));
    }
    let dims = |of: Value| &region.task.model.value(of).ty.dims;
    shared.into_iter().any(|&of| {
        let all = std::iter::once(&own).chain(&namesakes);
        let all: Vec<&Taken> = all.filter_map(|n| n.iter().find(|t| t.of == of)).collect();
        (0..RANK).all(|a| {
            let runs: Option<Vec<&Vec<Interval>>> =
                all.iter().map(|t| t.axes[a].as_ref()).collect();
            let (Some(runs), Some(size)) = (runs, dims(of)[a].as_const()) else {
                return true;
            };
            let mut runs: Vec<Interval> = runs.into_iter().flatten().copied().collect();
            runs.sort();
            runs.dedup();
            let end = runs
                .iter()
                .try_fold(0, |end, r| (r.start == end).then(|| r.end()));
            end == Some(size)
        })
    })
}
