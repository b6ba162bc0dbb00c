//! Finds the suspect op: a copy, slice or concatenation that differs from its namesakes on other devices in its value,
//! its order, or by a gap; or an op whose value has another name in the model.

use std::collections::{BTreeMap, HashSet};

use tpc_ir::{Dim, Inst, Interval, Op, Place, RANK, Value};

use crate::prove::encoding::Encoding;
use crate::prove::index_set::per_axis;
use crate::prove::language::is_empty;

const STEPS: usize = 8;

/// Returns the nearest slice, copy or concatenation before `inst` that differs from its namesakes on other devices. If
/// several ops move one value, returns the first. The search stops at justified values.
pub(super) fn find_odd_layout(encoding: &Encoding<'_>, inst: Inst) -> Option<Inst> {
    let programs = encoding.task.programs;
    let inside = instructions(encoding);
    let mut open = vec![inst];
    let mut seen = HashSet::new();
    let mut found = None;
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for i in open {
            let data = programs.inst(i);
            let fits = match data.op {
                Op::Slice(_) => fits_namesakes(encoding, i),
                Op::Copy(_) => is_in_device_order(encoding, i),
                Op::Concat(_) => is_sorted(encoding, data.results[0]),
                _ => true,
            };
            if !fits && found.is_none() {
                // Continue only through earlier ops that moved the value.
                seen.clear();
                next.clear();
            }
            if !fits {
                found = Some(i);
            }
            let empty = |&v: &Value| is_empty(&programs.value(v).ty);
            let right =
                |v: &Value| empty(v) || encoding.is_justified(*v) && encoding.has_its_name(*v);
            let is_right = || {
                data.results.iter().all(right)
                    && is_in_device_order(encoding, i)
                    && fits_namesakes(encoding, i)
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

fn instructions(encoding: &Encoding<'_>) -> HashSet<Inst> {
    encoding.task.of_programs.iter().copied().collect()
}

pub(super) fn find_misnamed(encoding: &Encoding<'_>, inst: Inst) -> Option<Inst> {
    let programs = encoding.task.programs;
    let other = |v: &Value| {
        let data = programs.value(*v);
        let known = encoding.programs.contains_key(v) && encoding.is_justified(*v);
        known && !is_empty(&data.ty) && !encoding.has_its_name(*v)
    };
    let computes = |op: &Op| !op.is_movement() && !op.is_leaf();
    let inside = instructions(encoding);
    let mut open = vec![inst];
    let mut found: Option<Inst> = None;
    for _ in 0..STEPS / 2 {
        let operands = open.iter().flat_map(|&i| &programs.inst(i).operands);
        let mut next: Vec<Inst> = operands.map(|&v| programs.value(v).def.0).collect();
        next.retain(|i| inside.contains(i));
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

fn is_sorted(encoding: &Encoding<'_>, v: Value) -> bool {
    let all = model_parts(encoding, v);
    let sorted = |t: &ModelPart| {
        t.axes
            .iter()
            .flatten()
            .all(|r| r.is_sorted_by_key(|r| r.start))
    };
    all.is_empty() || all.iter().any(sorted)
}

/// Returns the namesakes of an op's result. At another place, the namesake has the same name, kind and position among
/// such values. At the same place, all ops with this name, kind and operands are namesakes.
fn namesakes(encoding: &Encoding<'_>, inst: Inst) -> Vec<Value> {
    if !encoding.charge_scan() {
        return Vec::new();
    }
    let programs = encoding.task.programs;
    let kind = programs.inst(inst).op.name();
    let result = |i: Inst| programs.inst(i).results[0];
    let own = programs.value(result(inst));
    let mut before: BTreeMap<Place, Vec<Inst>> = BTreeMap::new();
    for &i in encoding.task.of_programs {
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
    // Parts that one place cuts for several devices belong to one value.
    let operands = &programs.inst(inst).operands;
    let here = before.get(&own.place).into_iter().flatten();
    let here = here.filter(|&&i| i != inst && programs.inst(i).operands == *operands);
    same.chain(here).map(|&i| result(i)).collect()
}

fn is_in_device_order(encoding: &Encoding<'_>, inst: Inst) -> bool {
    let programs = encoding.task.programs;
    let Some(&own) = programs.inst(inst).results.first() else {
        return true;
    };
    let mut all = namesakes(encoding, inst);
    all.push(own);
    all.retain(|&v| matches!(programs.value(v).place, Place::Device(_)));
    all.sort_by_key(|&v| programs.value(v).place);
    let all = all.into_iter().map(|v| model_parts(encoding, v));
    let all: Vec<Vec<ModelPart>> = all.filter(|t| !t.is_empty()).collect();
    let Some(first) = all.first() else {
        return true;
    };
    first.iter().map(|t| t.of).all(|of| {
        (0..RANK).all(|a| {
            let start = |t: &ModelPart| t.axes[a].as_ref()?.first().map(|r| r.start);
            let of_this = all.iter().filter_map(|n| n.iter().find(|t| t.of == of));
            let starts: Vec<u64> = of_this.filter_map(start).collect();
            starts.is_sorted()
        })
    })
}

/// A part of a model's value. Axes without indices are symbolic or complete.
struct ModelPart {
    of: Value,
    axes: [Option<Vec<Interval>>; RANK],
}

fn model_parts(encoding: &Encoding<'_>, v: Value) -> Vec<ModelPart> {
    let forms = encoding.parts_of_model(v).into_iter();
    let taken = forms.filter_map(|(of, indices)| {
        let dims = &encoding.task.model.value(of).ty.dims;
        let indices = per_axis(&indices, dims).ok()?;
        let mut axes = [const { None }; RANK];
        for (a, pattern) in indices.iter().enumerate() {
            if let Some(p) = pattern {
                axes[a] = p.refine(&Dim::ONE, &dims[a]).ok();
            }
        }
        Some(ModelPart { of, axes })
    });
    taken.collect()
}

/// True if an op's result and its namesakes are parts of one value without a gap.
fn fits_namesakes(encoding: &Encoding<'_>, inst: Inst) -> bool {
    let programs = encoding.task.programs;
    let Some(&result) = programs.inst(inst).results.first() else {
        return true;
    };
    if is_empty(&programs.value(result).ty) {
        return true;
    }
    let own = model_parts(encoding, result);
    if own.is_empty() {
        return false;
    }
    let namesakes: Vec<Vec<ModelPart>> = namesakes(encoding, inst)
        .into_iter()
        .map(|v| model_parts(encoding, v))
        .filter(|t| !t.is_empty())
        .collect();
    if namesakes.is_empty() {
        return encoding.has_its_name(result);
    }
    let of: HashSet<Value> = own.iter().map(|t| t.of).collect();
    let shared = of
        .iter()
        .filter(|&&of| namesakes.iter().all(|n| n.iter().any(|t| t.of == of)));
    let mut shared = shared.peekable();
    if shared.peek().is_none() {
        // Only this namesake is not a part of the common value.
        let first = namesakes.first().into_iter().flatten().map(|t| t.of);
        return !first
            .into_iter()
            .any(|of| namesakes.iter().all(|n| n.iter().any(|t| t.of == of)));
    }
    let dims = |of: Value| &encoding.task.model.value(of).ty.dims;
    shared.into_iter().any(|&of| {
        let all = std::iter::once(&own).chain(&namesakes);
        let all: Vec<&ModelPart> = all.filter_map(|n| n.iter().find(|t| t.of == of)).collect();
        (0..RANK).all(|a| {
            let intervals: Option<Vec<&Vec<Interval>>> =
                all.iter().map(|t| t.axes[a].as_ref()).collect();
            let (Some(intervals), Some(size)) = (intervals, dims(of)[a].as_const()) else {
                return true;
            };
            let mut intervals: Vec<Interval> = intervals.into_iter().flatten().copied().collect();
            intervals.sort();
            intervals.dedup();
            let end = intervals
                .iter()
                .try_fold(0, |end, r| (r.start == end).then(|| r.end()));
            end == Some(size)
        })
    })
}
