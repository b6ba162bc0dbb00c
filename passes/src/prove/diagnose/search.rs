//! Finds the first op whose value cannot be justified.
//!
//! A value is justified if it is a value of the model, a part of one, or a summand of the model's sums. All values
//! downstream of a fault are unjustified, so the first op with an unjustified value is the fault or reads it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use tpc_ir::{Inst, Op, Place, Value};

use super::verdicts::Verdicts;
use crate::prove::encoding::Encoding;
use crate::prove::refutation::RefutationReason;

/// Returns the first op before `goal` whose value is neither justified nor a summand, with the reason.
pub(super) fn first_unjustified(
    encoding: &mut Encoding<'_>,
    verdicts: &Verdicts,
    goal: Value,
) -> (Inst, RefutationReason) {
    let programs = encoding.task.programs;
    let cone = ancestors(encoding, goal);
    let mut users: HashMap<Value, Vec<Value>> = HashMap::new();
    let mut order = Vec::new();
    for &inst in encoding.task.of_programs {
        let data = programs.inst(inst);
        for &v in data.results.iter().filter(|v| cone.contains(v)) {
            order.push((inst, v));
            for &o in &data.operands {
                users.entry(o).or_default().push(v);
            }
        }
    }
    let mut spare = None;
    for &(inst, v) in &order {
        let used_by: &[Value] = users.get(&v).map_or(&[], Vec::as_slice);
        let excused = used_by.iter().any(|u| verdicts.is_ok(u));
        let leaks = used_by.iter().any(|u| !verdicts.is_ok(u)) || v == goal;
        let op = &programs.inst(inst).op;
        if !verdicts.is_ok(&v) && !excused {
            let operands = &programs.inst(inst).operands;
            let summand = operands.iter().find(|o| verdicts.summands.contains(o));
            let fault = match summand {
                Some(&operand) if !op.is_collective() => {
                    (inst, RefutationReason::Unreduced { operand })
                }
                _ => (inst, RefutationReason::Value),
            };
            if summand.is_some() && is_summed_elsewhere(encoding, v) {
                // Other devices sum this op's result, so the value is a summand and the fault is probably later.
                spare = spare.or(Some(fault));
                continue;
            }
            return fault;
        }
        // The result of an all-reduce over the summand is a better place to report.
        if verdicts.summands.contains(&v)
            && !op.is_movement()
            && !is_summed(encoding, v)
            && (leaks || is_on_several_devices(encoding, verdicts, v))
            && !adds_up(encoding, verdicts, v)
        {
            // The reader uses the summand as if it were the whole sum.
            let takes =
                |i: Inst, u: &Value| !verdicts.is_ok(u) && programs.inst(i).operands.contains(&v);
            let reader = order.iter().find(|(i, u)| takes(*i, u));
            match reader {
                Some(&(i, _)) if !programs.inst(i).op.is_collective() => {
                    return (i, RefutationReason::Unreduced { operand: v });
                }
                Some(_) => return (inst, RefutationReason::Summand),
                None if v == goal => return (inst, RefutationReason::Summand),
                None => {}
            }
        }
    }
    spare.unwrap_or((programs.value(goal).def.0, RefutationReason::Value))
}

/// True if another device has the same op and name, and a collective reads its result.
fn is_summed_elsewhere(encoding: &Encoding<'_>, v: Value) -> bool {
    if !encoding.charge_scan() {
        return false;
    }
    let programs = encoding.task.programs;
    let own = programs.value(v);
    let kind = programs.def_op(v).name();
    let results = encoding.task.of_programs.iter();
    let mut results = results.flat_map(|&i| &programs.inst(i).results);
    results.any(|&u| {
        let other = programs.value(u);
        let same = other.name == own.name && other.ty == own.ty && other.place != own.place;
        same && programs.def_op(u).name() == kind && is_summed(encoding, u)
    })
}

fn is_summed(encoding: &Encoding<'_>, v: Value) -> bool {
    if !encoding.charge_scan() {
        return false;
    }
    let programs = encoding.task.programs;
    let mut moved = HashSet::from([v]);
    encoding.task.of_programs.iter().any(|&i| {
        let data = programs.inst(i);
        let reads = data.operands.iter().any(|o| moved.contains(o));
        if reads && data.op.is_movement() {
            moved.extend(&data.results);
        }
        reads && data.op.is_collective()
    })
}

/// Returns the first collective before `goal` that omits devices or sums whole values, if its result is not a value of
/// the model.
pub(super) fn find_odd_collective(
    encoding: &Encoding<'_>,
    verdicts: &Verdicts,
    goal: Value,
) -> Option<Inst> {
    let programs = encoding.task.programs;
    let cone = ancestors(encoding, goal);
    let width = |i: Inst| {
        let data = programs.inst(i);
        let reduces = matches!(data.op, Op::AllReduce(_));
        if reduces { data.results.len() } else { 0 }
    };
    let most = programs.insts().map(|(i, _)| width(i)).max();
    encoding.task.of_programs.iter().copied().find(|&i| {
        let data = programs.inst(i);
        let fails = data
            .results
            .iter()
            .any(|v| cone.contains(v) && !encoding.is_justified(*v));
        let whole = |v: &Value| {
            let zero = encoding.terms.is_zero(encoding.programs[v]);
            encoding.is_justified(*v) && !zero
        };
        let left_out = Some(width(i)) < most;
        let already =
            data.operands.iter().any(whole) && data.operands.iter().all(|o| verdicts.is_ok(o));
        width(i) > 0 && fails && (left_out || already)
    })
}

fn is_on_several_devices(encoding: &Encoding<'_>, verdicts: &Verdicts, v: Value) -> bool {
    if !encoding.charge_scan() {
        return false;
    }
    let programs = encoding.task.programs;
    let (name, place) = (&programs.value(v).name, programs.value(v).place);
    let results = encoding.task.of_programs.iter();
    results.flat_map(|&i| &programs.inst(i).results).any(|u| {
        let other = programs.value(*u);
        let shared = verdicts.targets[u]
            .iter()
            .any(|t| verdicts.targets[&v].contains(t));
        other.name == *name && other.place != place && shared
    })
}

/// True if the devices' summands of this name add up to the model's value. A device's summand may have an earlier name.
fn adds_up(encoding: &mut Encoding<'_>, verdicts: &Verdicts, v: Value) -> bool {
    if !encoding.charge_scan() {
        return true;
    }
    let programs = encoding.task.programs;
    let name = &programs.value(v).name;
    let ty = &programs.value(v).ty;
    let terms: Vec<(Place, Value)> = encoding
        .task
        .of_programs
        .iter()
        .flat_map(|&i| &programs.inst(i).results)
        .filter(|u| {
            let data = programs.value(**u);
            data.name == *name && data.ty == *ty && !encoding.is_justified(**u)
        })
        .map(|&u| (programs.value(u).place, u))
        .collect();
    if terms.iter().any(|(_, u)| !verdicts.is_ok(u)) {
        return true;
    }
    for &target in &verdicts.targets[&v] {
        let mut bundle: BTreeMap<Place, Value> = BTreeMap::new();
        for &(place, u) in &terms {
            let fits = verdicts.targets[&u].contains(&target);
            match bundle.entry(place) {
                Entry::Vacant(e) => {
                    e.insert(u);
                }
                Entry::Occupied(mut e) => {
                    if fits && !verdicts.targets[e.get()].contains(&target) {
                        e.insert(u);
                    }
                }
            }
        }
        let summands = bundle.values().map(|u| encoding.programs[u]).collect();
        let sum = encoding.terms.sum(summands);
        let graph = &encoding.terms.graph;
        if graph.find(sum) == graph.find(target) {
            return true;
        }
    }
    false
}

fn ancestors(encoding: &Encoding<'_>, v: Value) -> HashSet<Value> {
    let programs = encoding.task.programs;
    let inside: HashSet<Inst> = encoding.task.of_programs.iter().copied().collect();
    let mut found = HashSet::new();
    let mut open = vec![v];
    while let Some(v) = open.pop() {
        let def = programs.value(v).def.0;
        if inside.contains(&def) && found.insert(v) {
            open.extend(&programs.inst(def).operands);
        }
    }
    found
}
