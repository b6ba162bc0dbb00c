//! What to say when a proof fails: the first op whose value cannot be justified.
//!
//! A value is justified if it is a value of the model or a part of one, or if it is one device's term of a sum that the
//! model has. What is downstream of a fault is justified no more, so the first such op is the fault or reads it.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};

use egg::Id;
use tpc_ir::{Graph, Inst, Op, Place, TensorType, Value};

use super::parts_of_leaves;
use super::region::Region;
use super::rules::{parts, plus, sums};
use super::words;

/// Why a value is not what the model says.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unproven {
    /// An operand is defined later.
    #[error("reads {operand} before it is defined")]
    Order {
        /// The operand.
        operand: Value,
    },
    /// An op sees more than one place.
    #[error("runs where not all of its operands are")]
    Places,
    /// An operand from an earlier layer is not a value of the model.
    #[error("reads {operand}, which is no value of the model")]
    Operand {
        /// The operand.
        operand: Value,
    },
    /// A leaf is not one of the model.
    #[error("reads a tensor that the model does not have")]
    Leaf,
    /// What it holds of a leaf, or what a collective does, makes no sense.
    #[error(
        "holds a part that cannot be: it cuts a quantisation block, or the parts do not make up the whole"
    )]
    Meaning,
    /// The declared type is not what the op gives.
    #[error("has another type than its op gives{}", found.as_ref().map_or_else(String::new, |t| format!(" ({t})")))]
    Type {
        /// What the op gives, if it takes its operands at all.
        found: Option<TensorType>,
    },
    /// The value is nothing that the model has.
    #[error(
        "is neither a value of the model, nor a part of one, nor a term of a sum that makes one"
    )]
    Value,
    /// A value of the model, but not the one of that name.
    #[error("is a value of the model or a part of one, but of another one than its name says")]
    Another,
    /// A term of a sum is counted more than once or not at all.
    #[error("is a term of a sum that does not make the model's value")]
    Term,
    /// What the devices hold of a tensor does not go together.
    #[error("holds a part that does not go with those of the other devices")]
    Part,
    /// A sum is used before it is done.
    #[error(
        "reads {operand}, which is only this device's term of a sum: the all-reduce is missing"
    )]
    Pending {
        /// The operand.
        operand: Value,
    },
    /// An output is another value than the model's.
    #[error("gives output `{name}`, but is not that value of the model")]
    Output {
        /// The output's name.
        name: String,
    },
    /// An output is missing.
    #[error("output `{name}` is missing")]
    Missing {
        /// The output's name.
        name: String,
    },
    /// The new content of a state is another than the model's.
    #[error("becomes the content of state `{name}`, but is not the model's")]
    State {
        /// The state's name.
        name: String,
    },
    /// A part of a state is never renewed.
    #[error("keeps state `{name}`, which the model renews")]
    Stale {
        /// The state's name.
        name: String,
    },
    /// Two values of different types were found equal.
    #[error("led to a contradiction: two values of different types were found equal")]
    Contradiction,
    /// The region is too large to be proved.
    #[error("needs more terms than the proof may make")]
    Limit,
}

/// The first op that is not justified.
#[derive(Clone, Debug, PartialEq)]
pub struct Refutation {
    /// The instruction of the programs; `None` when something is missing.
    pub inst: Option<Inst>,
    /// Its op's name.
    pub op: String,
    /// Its value's name.
    pub value: String,
    /// Where it runs.
    pub place: String,
    /// The layer that it belongs to.
    pub layer: Option<u32>,
    /// What is wrong.
    pub what: Unproven,
    /// What it computes, in terms of the model's values.
    pub found: Option<String>,
    /// What the model says there.
    pub expected: Option<String>,
}

impl std::fmt::Display for Refutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.inst.is_none() {
            return write!(f, "{}", self.what);
        }
        write!(f, "`{}` of `{}` on {}", self.op, self.value, self.place)?;
        if let Some(l) = self.layer {
            write!(f, " in layer {l}")?;
        }
        write!(f, " {}", self.what)
    }
}

impl std::error::Error for Refutation {}

impl Refutation {
    /// A fault of an instruction.
    pub(super) fn at(programs: &Graph, inst: Inst, what: Unproven) -> Box<Refutation> {
        Refutation::of_output(programs, Some(inst), what)
    }

    /// A fault of an instruction, or of none.
    pub(super) fn of_output(
        programs: &Graph,
        inst: Option<Inst>,
        what: Unproven,
    ) -> Box<Refutation> {
        let data = inst.map(|i| programs.inst(i));
        let value = data.and_then(|d| d.results.first().map(|&v| programs.value(v)));
        Box::new(Refutation {
            inst,
            op: data.map_or_else(String::new, |d| d.op.name().to_owned()),
            value: value.map_or_else(String::new, |v| v.name.clone()),
            place: value.map_or_else(String::new, |v| match v.place {
                Place::Device(d) => programs.device(d).name.clone(),
                other => other.to_string(),
            }),
            layer: data.and_then(|d| d.layer),
            what,
            found: None,
            expected: None,
        })
    }
}

/// Finds the op because of which `wanted` is not justified.
pub(super) fn find(region: &mut Region<'_>, wanted: Value) -> Box<Refutation> {
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
            None => match misnamed(region, inst) {
                Some(other) => (other, Unproven::Another),
                None => (inst, what),
            },
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

/// Steps back from an op in which another value may have been taken.
const STEPS: usize = 6;

/// The nearest slice before an op that is a part of a value of the model, but not of one of its name: another segment. Names prove nothing;
/// beside an op that cannot be justified they say why.
fn misnamed(region: &Region<'_>, inst: Inst) -> Option<Inst> {
    let programs = region.task.programs;
    let inside: HashSet<Inst> = region.task.of_programs.iter().copied().collect();
    let mut open = vec![inst];
    let mut seen = HashSet::new();
    for _ in 0..STEPS {
        let mut next = Vec::new();
        for i in open {
            let data = programs.inst(i);
            let other = |&v: &Value| region.is_justified(v) && !region.has_its_name(v);
            if matches!(data.op, Op::Slice(_)) && data.results.iter().all(other) {
                return Some(i);
            }
            for &v in &data.operands {
                let def = programs.value(v).def.0;
                if inside.contains(&def) && seen.insert(def) {
                    next.push(def);
                }
            }
        }
        open = next;
    }
    None
}

#[derive(Default)]
struct Search {
    /// Whether terms of sums count that the model does not have: what a device has left of a sum of several.
    any_target: bool,
    /// Per value, the model's values that it is a term of.
    targets: HashMap<Value, Vec<Id>>,
    ok: HashMap<Value, bool>,
}

impl Search {
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
            let excused = used_by.iter().any(|u| self.ok[u]);
            let leaks = used_by.iter().any(|u| !self.ok[u]) || v == wanted;
            if !self.ok[&v] && !excused {
                let pending = programs.inst(inst).operands.iter().find(|o| {
                    let term = self.targets.get(o).is_some_and(|t| !t.is_empty());
                    term && !region.is_justified(**o)
                });
                let collective = programs.inst(inst).op.is_collective();
                return match pending {
                    Some(&operand) if !collective => (inst, Unproven::Pending { operand }),
                    _ => (inst, Unproven::Value),
                };
            }
            let is_term = !self.targets[&v].is_empty() && !region.is_justified(v);
            // Where an all-reduce reads it, what that gives shows more.
            let summed = region.task.of_programs.iter().any(|&i| {
                let data = programs.inst(i);
                data.op.is_collective() && data.operands.contains(&v)
            });
            if is_term
                && !summed
                && (leaks || self.on_several(region, v))
                && !self.adds_up(region, v)
            {
                return (inst, Unproven::Term);
            }
        }
        (programs.value(wanted).def.0, Unproven::Value)
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
            let fails = data.results.iter().any(|v| cone.contains(v) && !self.ok[v]);
            let whole = |v: &Value| {
                let zero = region.terms.is_zero(region.programs[v]);
                region.is_justified(*v) && !zero
            };
            let left_out = Some(width(i)) < most;
            width(i) > 0 && fails && (left_out || data.operands.iter().any(whole))
        })
    }

    /// Finds of all values of the region what they are.
    fn prepare(&mut self, region: &mut Region<'_>) {
        let programs = region.task.programs;
        for &inst in region.task.of_programs {
            let data = programs.inst(inst);
            for &v in &data.results {
                let targets = self.find_targets(region, &data.op, &data.operands, v);
                // Nothing is a term of every sum. What is padded is nothing that the model has; its reader tells.
                let whole = region.is_justified(v)
                    || matches!(data.op, Op::Pad(_))
                    || region.terms.is_zero(region.programs[&v]);
                self.ok.insert(v, whole || !targets.is_empty());
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
            if bundle.values().all(|v| self.ok[v]) || bundle.len() < 2 {
                continue;
            }
            let types: Vec<_> = bundle.values().map(|&v| &programs.value(v).ty).collect();
            if types.windows(2).any(|t| t[0] != t[1]) {
                continue;
            }
            let summands = bundle.values().map(|v| region.programs[v]).collect();
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
                    out.extend(region.terms.lookup_op(&r.op, result, bases));
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
        if terms.iter().any(|(_, u)| !self.ok[u]) {
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
    !search.targets[&wanted].is_empty() || region.terms.is_zero(region.programs[&wanted])
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
