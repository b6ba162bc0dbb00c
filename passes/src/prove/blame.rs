//! What to say when a proof fails: the first op whose value cannot be justified.
//!
//! A value is justified if it is a value of the model or a part of one, or if it is one device's term of a sum that the
//! model has. What is downstream of a fault is justified no more, so the first such op is the fault or reads it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use egg::Id;
use tpc_ir::op::BinaryKind;
use tpc_ir::{Inst, InstData, Op, Place, Value};

use super::misfits;
use super::parts_of_leaves;
use super::refutation::{Refutation, Unproven};
use super::region::Region;
use super::rules::{parts, plus, sums};
use super::words;

/// Terms that are made to find the op.
const MORE_TERMS: usize = 1 << 16;

/// Finds the op because of which `wanted` is not justified.
pub(super) fn find(region: &mut Region<'_>, wanted: Value) -> Box<Refutation> {
    // What is made here is made to find words: it may be cut short.
    region.terms.max_terms = region.terms.graph.total_size() + MORE_TERMS;
    let mut search = Search::default();
    let (inst, what) = match search.odd_collective(region, wanted) {
        Some(odd) => (odd, Unproven::Term),
        None => search.first(region, wanted),
    };
    let (inst, what) = match what {
        Unproven::Value => match parts_of_leaves::misfit(
            region.task.programs,
            region.task.model,
            region.task.leaves,
            inst,
        ) {
            Some(leaf) => (leaf, Unproven::Part),
            None => {
                let other = misfits::misfit(region, inst);
                match other.or_else(|| misfits::misnamed(region, inst)) {
                    Some(other) => (other, Unproven::Another),
                    None => (inst, what),
                }
            }
        },
        other => (inst, other),
    };
    let mut refutation = Refutation::at(region.task.programs, inst, what);
    let result = region.task.programs.inst(inst).results.first().copied();
    if let Some(v) = result {
        refutation.found = Some(words::computed(region, v));
        refutation.expected = words::expected(region, v);
    }
    refutation
}

/// Whether a class is the statistic of a norm of the model, or several next to one another: a step that the model does
/// not have.
fn is_step(region: &Region<'_>, id: Id) -> bool {
    let of_model = |id: Id| {
        region.terms.graph[region.terms.graph.find(id)]
            .data
            .model
            .is_some()
    };
    region
        .terms
        .ops_of(id)
        .into_iter()
        .any(|(op, _, args)| match op {
            Op::NormStats(_) => args.into_iter().all(of_model),
            Op::Concat(_) => args.into_iter().all(|a| a != id && is_step(region, a)),
            _ => false,
        })
}

#[derive(Default)]
struct Search {
    /// Whether terms of sums count that the model does not have: what a device has left of a sum of several.
    any_target: bool,
    /// Per value, the model's values that it is a term of.
    targets: HashMap<Value, Vec<Id>>,
    ok: HashMap<Value, bool>,
    /// Values that are one device's term of a sum.
    pending: HashSet<Value>,
}

impl Search {
    /// Whether a value is as good as what it is computed from; values from outside are.
    fn is_ok(&self, v: &Value) -> bool {
        self.ok.get(v).copied().unwrap_or(true)
    }

    fn first(&mut self, region: &mut Region<'_>, wanted: Value) -> (Inst, Unproven) {
        let programs = region.task.programs;
        let cone = ancestors(region, wanted);
        let mut users: HashMap<Value, Vec<Value>> = HashMap::new();
        let mut order = Vec::new();
        for &inst in region.task.of_programs {
            let data = programs.inst(inst);
            for &v in data.results.iter().filter(|v| cone.contains(v)) {
                order.push((inst, v));
                for &o in &data.operands {
                    users.entry(o).or_default().push(v);
                }
            }
        }
        for &(inst, v) in &order {
            let used_by: &[Value] = users.get(&v).map_or(&[], Vec::as_slice);
            let excused = used_by.iter().any(|u| self.is_ok(u));
            let leaks = used_by.iter().any(|u| !self.is_ok(u)) || v == wanted;
            let op = &programs.inst(inst).op;
            if !self.is_ok(&v) && !excused {
                let operands = &programs.inst(inst).operands;
                let pending = operands.iter().find(|o| self.pending.contains(o));
                return match pending {
                    Some(&operand) if !op.is_collective() => {
                        (inst, Unproven::Unreduced { operand })
                    }
                    _ => (inst, Unproven::Value),
                };
            }
            // Where an all-reduce reads it, what that gives shows more.
            if self.pending.contains(&v)
                && !op.is_movement()
                && !self.is_summed(region, v)
                && (leaks || self.on_several(region, v))
                && !self.adds_up(region, v)
            {
                // Whoever reads it takes it for the whole.
                let takes =
                    |i: Inst, u: &Value| !self.is_ok(u) && programs.inst(i).operands.contains(&v);
                let reader = order.iter().find(|(i, u)| takes(*i, u));
                match reader {
                    Some(&(i, _)) if !programs.inst(i).op.is_collective() => {
                        return (i, Unproven::Unreduced { operand: v });
                    }
                    Some(_) => return (inst, Unproven::Term),
                    None if v == wanted => return (inst, Unproven::Term),
                    None => {}
                }
            }
        }
        (programs.value(wanted).def.0, Unproven::Value)
    }

    /// Whether an op makes a term of a sum that the model does not have by itself: it adds something whole to a term or to
    /// nothing, or is linear in such a term.
    fn adds(&self, region: &Region<'_>, data: &InstData) -> bool {
        let known = |o: &Value| region.programs.get(o).copied();
        let zero = |o: &Value| known(o).is_some_and(|id| region.terms.is_zero(id));
        let term = |o: &Value| zero(o) || self.pending.contains(o);
        let of_none =
            |o: &Value| self.pending.contains(o) && self.targets.get(o).is_none_or(Vec::is_empty);
        let operands = &data.operands;
        let right = operands.iter().all(|o| zero(o) || self.is_ok(o));
        if let Op::Binary(op) = &data.op
            && op.kind == BinaryKind::Add
        {
            return right && operands.iter().any(term);
        }
        let args: Option<Vec<Id>> = operands.iter().map(known).collect();
        let linear = |k: usize| {
            args.as_ref()
                .is_some_and(|args| sums::is_linear_in(&region.terms, &data.op, args, &[k]))
        };
        right && (0..operands.len()).any(|k| of_none(&operands[k]) && linear(k))
    }

    /// Whether a collective reads a value, moved or not.
    fn is_summed(&self, region: &Region<'_>, v: Value) -> bool {
        let programs = region.task.programs;
        let mut moved = HashSet::from([v]);
        region.task.of_programs.iter().any(|&i| {
            let data = programs.inst(i);
            let reads = data.operands.iter().any(|o| moved.contains(o));
            if reads && data.op.is_movement() {
                moved.extend(&data.results);
            }
            reads && data.op.is_collective()
        })
    }

    /// A collective before `wanted` that gives nothing of the model's and is unlike others: devices that take part in
    /// others are left out, or it sums what is whole already.
    fn odd_collective(&mut self, region: &mut Region<'_>, wanted: Value) -> Option<Inst> {
        let programs = region.task.programs;
        self.prepare(region);
        let cone = ancestors(region, wanted);
        let width = |i: Inst| {
            let data = programs.inst(i);
            let reduces = matches!(data.op, Op::AllReduce(_));
            if reduces { data.results.len() } else { 0 }
        };
        let most = programs.insts().map(|(i, _)| width(i)).max();
        region.task.of_programs.iter().copied().find(|&i| {
            let data = programs.inst(i);
            let fails = data
                .results
                .iter()
                .any(|v| cone.contains(v) && !region.is_justified(*v));
            let whole = |v: &Value| {
                let zero = region.terms.is_zero(region.programs[v]);
                region.is_justified(*v) && !zero
            };
            let left_out = Some(width(i)) < most;
            let already =
                data.operands.iter().any(whole) && data.operands.iter().all(|o| self.is_ok(o));
            width(i) > 0 && fails && (left_out || already)
        })
    }

    /// Finds of all values of the region what they are.
    fn prepare(&mut self, region: &mut Region<'_>) {
        let programs = region.task.programs;
        for &inst in region.task.of_programs {
            let data = programs.inst(inst);
            for &v in &data.results {
                let targets = self.find_targets(region, &data.op, &data.operands, v);
                let whole = region.is_justified(v);
                // Nothing is a term of every sum. What is moved is as good as it was.
                let zero = region.terms.is_zero(region.programs[&v]);
                let moved = data.op.is_movement() && data.operands.iter().all(|o| self.is_ok(o));
                let of_pending = |o: &Value| self.pending.contains(o);
                let term = !targets.is_empty() || self.adds(region, data);
                if !whole && !zero && term
                    || !whole && data.op.is_movement() && data.operands.iter().any(of_pending)
                {
                    self.pending.insert(v);
                }
                let step = is_step(region, region.programs[&v]) || self.adds(region, data);
                self.ok
                    .insert(v, whole || zero || moved || step || !targets.is_empty());
                self.targets.insert(v, targets);
            }
        }
        self.by_name(region);
    }

    /// What the devices have under one name may make a value of the model together though no device has a term of one.
    fn by_name(&mut self, region: &mut Region<'_>) {
        let programs = region.task.programs;
        let mut named: BTreeMap<&str, BTreeMap<Place, Value>> = BTreeMap::new();
        for &inst in region.task.of_programs {
            for &v in &programs.inst(inst).results {
                let data = programs.value(v);
                named.entry(&data.name).or_default().insert(data.place, v);
            }
        }
        for bundle in named.into_values() {
            if bundle.values().all(|v| self.is_ok(v)) || bundle.len() < 2 {
                continue;
            }
            let types: Vec<_> = bundle.values().map(|&v| &programs.value(v).ty).collect();
            if types.windows(2).any(|t| t[0] != t[1]) {
                continue;
            }
            let summands: Vec<Id> = bundle.values().map(|v| region.programs[v]).collect();
            if summands.windows(2).any(|w| w[0] == w[1]) {
                continue;
            }
            let sum = plus(&mut region.terms, summands);
            let graph = &region.terms.graph;
            if graph[graph.find(sum)].data.model.is_some() {
                for v in bundle.values() {
                    self.ok.insert(*v, true);
                }
            }
        }
    }

    /// The model's values that a value may be one device's term of.
    fn find_targets(
        &self,
        region: &mut Region<'_>,
        op: &Op,
        operands: &[Value],
        v: Value,
    ) -> Vec<Id> {
        let id = region.programs[&v];
        let mut out = Vec::new();
        for (op, result, args) in region.terms.ops_of(id) {
            for way in parts::ways(&region.terms, &args) {
                if let Some(r) = parts::related(&op, &way)
                    && (r.summed.is_some() || r.window.is_some())
                {
                    let bases = way.iter().map(|f| f.base).collect();
                    if matches!(r.op, Op::NormStats(_)) {
                        out.push(region.terms.add_op(&r.op, result, bases));
                    } else {
                        out.extend(region.terms.lookup_op(&r.op, result, bases));
                    }
                }
            }
        }
        out.extend(
            region
                .terms
                .only_of(id)
                .into_iter()
                .map(|(_, value, _)| value),
        );
        // A linear function of a term of a sum is a term of the function of the sum; so is a sum with something whole.
        let ids: Vec<Id> = operands.iter().map(|o| region.programs[o]).collect();
        let targets: Vec<Vec<Id>> = operands
            .iter()
            .map(|o| self.targets.get(o).cloned().unwrap_or_default())
            .collect();
        for args in combinations(&ids, &targets) {
            let replaced: Vec<usize> = (0..ids.len()).filter(|&k| args[k] != ids[k]).collect();
            let sum = matches!(op, Op::Binary(_) | Op::AddId(_));
            let linear =
                op.is_layout() || sum || sums::is_linear_in(&region.terms, op, &args, &replaced);
            if linear && !replaced.is_empty() {
                out.push(region.terms.add_op(op, 0, args));
            }
        }
        let graph = &region.terms.graph;
        let mut out: Vec<Id> = out.into_iter().map(|id| graph.find(id)).collect();
        // The statistic of a norm is a step that the model does not have.
        let is_step = matches!(op, Op::NormStats(_));
        out.retain(|&id| is_step || self.any_target || graph[id].data.model.is_some());
        out.sort_unstable();
        out.dedup();
        out
    }

    /// Whether several devices have a term of the same value under the same name.
    fn on_several(&self, region: &Region<'_>, v: Value) -> bool {
        let programs = region.task.programs;
        let (name, place) = (&programs.value(v).name, programs.value(v).place);
        let results = region.task.of_programs.iter();
        results.flat_map(|&i| &programs.inst(i).results).any(|u| {
            let other = programs.value(*u);
            let shared = self.targets[u].iter().any(|t| self.targets[&v].contains(t));
            other.name == *name && other.place != place && shared
        })
    }

    /// Whether the terms that the devices have under this value's name make the model's value. A device whose term is
    /// nothing but an earlier one has no value of its own for it.
    fn adds_up(&self, region: &mut Region<'_>, v: Value) -> bool {
        let programs = region.task.programs;
        let name = &programs.value(v).name;
        let ty = &programs.value(v).ty;
        let terms: Vec<(Place, Value)> = region
            .task
            .of_programs
            .iter()
            .flat_map(|&i| &programs.inst(i).results)
            .filter(|u| {
                let data = programs.value(**u);
                data.name == *name && data.ty == *ty && !region.is_justified(**u)
            })
            .map(|&u| (programs.value(u).place, u))
            .collect();
        // One that is no term of anything is told by itself.
        if terms.iter().any(|(_, u)| !self.is_ok(u)) {
            return true;
        }
        for &target in &self.targets[&v] {
            let mut bundle: BTreeMap<Place, Value> = BTreeMap::new();
            for &(place, u) in &terms {
                let fits = self.targets[&u].contains(&target);
                match bundle.entry(place) {
                    Entry::Vacant(e) => {
                        e.insert(u);
                    }
                    Entry::Occupied(mut e) => {
                        if fits && !self.targets[e.get()].contains(&target) {
                            e.insert(u);
                        }
                    }
                }
            }
            let summands = bundle.values().map(|u| region.programs[u]).collect();
            let sum = plus(&mut region.terms, summands);
            let graph = &region.terms.graph;
            if graph.find(sum) == graph.find(target) {
                return true;
            }
        }
        false
    }
}

/// Whether a value is one device's term of a sum that the model has.
pub(super) fn is_term(region: &mut Region<'_>, wanted: Value) -> bool {
    let mut search = Search {
        any_target: true,
        ..Search::default()
    };
    search.prepare(region);
    search.pending.contains(&wanted) || region.terms.is_zero(region.programs[&wanted])
}

/// The arguments with any of them replaced by what they are terms of.
fn combinations(args: &[Id], targets: &[Vec<Id>]) -> Vec<Vec<Id>> {
    let mut out = vec![Vec::new()];
    for (&a, targets) in args.iter().zip(targets) {
        let choices = std::iter::once(a).chain(targets.iter().copied());
        let choices: Vec<Id> = choices.take(3).collect();
        out = out
            .iter()
            .flat_map(|way: &Vec<Id>| {
                choices.iter().map(|&c| {
                    let mut way = way.clone();
                    way.push(c);
                    way
                })
            })
            .take(64)
            .collect();
    }
    out
}

/// The values of the region that a value is computed from, itself included.
fn ancestors(region: &Region<'_>, v: Value) -> HashSet<Value> {
    let programs = region.task.programs;
    let inside: HashSet<Inst> = region.task.of_programs.iter().copied().collect();
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
