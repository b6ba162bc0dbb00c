//! # The proof: what the devices compute is what the model says
//!
//! [`prove`] takes the model's graph and the programs of all devices, and nothing else: neither the plan nor the
//! sharded graph, nor any analysis that led to them. Of `tpc-ir` it uses the ops' definitions alone: their types, their
//! rules and how their indices meet.
//!
//! It works region by region (a layer is one), in an e-graph of its own:
//!
//! 1. The model's values of the region become terms (`term.rs`).
//! 2. The programs' values become terms in the same e-graph, in program order. A device's weight is a *view* `w[p]` of
//!    the model's weight, a copy is what it copies, an all-reduce is a sum of its operands' terms, an all-gather a
//!    concatenation. The [rules](rules()) say which terms are equal: `f(x[p]) = f(x)[r]`, `Σ mul_mat(w[pᵢ], x[pᵢ]) = mul_mat(w, x)`
//!    and so on. What a device computes is never compared with what it was meant to compute: it ends up in the same class
//!    as the model's value, or it does not.
//! 3. What later regions use must be the model's value or a view of one; so must every output.
//!
//! Regions that are equal but for names are proved once (`signature.rs`). Real numbers are meant throughout: a sum's order
//! does not matter here, as it does in floating point.
//!
//! What is proved holds for every number of tokens and cells, as sizes are symbols.

mod blame;
mod misfits;
mod parts_of_leaves;
mod pick;
mod refutation;
mod region;
mod regions;
mod relate;
mod rules;
mod signature;
mod structure;
mod term;
mod terms;
mod words;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use tpc_ir::op::InputKind;
use tpc_ir::{Graph, Inst, Op, Output, Value};

pub use refutation::{Refutation, Unproven};
use region::{Form, Known, RegionProof, Stop};
use regions::Regions;
use signature::Interner;

/// How a proof went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// Regions of the model.
    pub regions: usize,
    /// Regions that were proved, the others being equal to them but for names.
    pub distinct: usize,
    /// Terms of the largest e-graph.
    pub terms: usize,
    /// How often each rule found terms equal.
    pub rules: BTreeMap<&'static str, u64>,
}

/// The names of the proof's rules with what they say.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::RULES.iter().map(|r| (r.name, r.equation))
}

/// Proves that `programs` compute what `model` says.
///
/// # Errors
/// The first op whose value cannot be justified.
pub fn prove(model: &Graph, programs: &Graph) -> Result<Proof, Box<Refutation>> {
    prove_without(model, programs, None)
}

/// [`prove`] without the rule of that name, to see what needs it.
///
/// # Errors
/// The first op whose value cannot be justified.
pub fn prove_without(
    model: &Graph,
    programs: &Graph,
    without: Option<&str>,
) -> Result<Proof, Box<Refutation>> {
    structure::check(programs)?;
    let leaves = Leaves::new(model);
    let count = regions::count([model, programs]);
    let of_model = Regions::new(model, count);
    let of_programs = Regions::new(programs, count);
    let mut known = Known::new(model, programs);
    let mut interner = Interner::default();
    // Regions that have no proof of their own are noted as well.
    let mut proved: HashMap<Vec<u32>, Option<RegionProof>> = HashMap::new();
    let model_region = of_model.of.clone();
    let mut proof = Proof {
        regions: count,
        ..Proof::default()
    };
    let last_use = last_use(programs, &of_programs);
    let mut from = 0;
    let mut to = 1;
    while from < count {
        let of_model = of_model.together(from..to);
        let of_programs = of_programs.together(from..to);
        let task = region::Task {
            model,
            programs,
            leaves: &leaves,
            known: &known,
            of_model: &of_model,
            of_programs: &of_programs,
            model_region: &model_region,
            regions: from..to,
            last_use: &last_use,
        };
        let (signature, boundary) = signature::of(&task, &mut interner)?;
        let done = match proved.entry(signature) {
            // What could be proved with the next region only has none left at the end.
            Entry::Occupied(e) if e.get().is_some() || to < count => e.into_mut(),
            entry => {
                let done = match region::prove(&task, &boundary, without) {
                    Ok(done) => Some(done),
                    Err(Stop::Crossing(_)) if to < count => None,
                    Err(Stop::Crossing(r) | Stop::Refuted(r)) => return Err(r),
                };
                proof.distinct += 1;
                for (&rule, n) in done.iter().flat_map(|d| &d.found) {
                    *proof.rules.entry(rule).or_default() += n;
                }
                proof.terms = proof.terms.max(done.as_ref().map_or(0, |d| d.terms));
                entry.insert_entry(done).into_mut()
            }
        };
        match done {
            // A sum is done in the next region: both are proved together.
            None => to += 1,
            Some(done) => {
                known.learn(&of_model, &of_programs, &boundary, done, model, programs);
                (from, to) = (to, to + 1);
            }
        }
    }
    outputs(model, programs, &leaves, &known)?;
    Ok(proof)
}

/// The leaves of a model by what they are called.
#[derive(Debug)]
struct Leaves<'a> {
    by_name: HashMap<LeafName<'a>, Value>,
}

/// What a leaf is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum LeafName<'a> {
    Weight(&'a str),
    State(&'a str),
    Input(&'a InputKind),
}

/// What a leaf is called; `None` for other ops, and for leaves that every place makes for itself.
fn leaf_name(op: &Op) -> Option<LeafName<'_>> {
    match op {
        Op::Weight(w) => Some(LeafName::Weight(&w.tensor)),
        Op::State(s) => Some(LeafName::State(&s.name)),
        Op::Input(i) => Some(LeafName::Input(&i.kind)),
        _ => None,
    }
}

impl Leaves<'_> {
    fn new(model: &Graph) -> Leaves<'_> {
        let mut by_name = HashMap::new();
        for (_, data) in model.insts() {
            if let (Some(name), Some(&v)) = (leaf_name(&data.op), data.results.first()) {
                by_name.entry(name).or_insert(v);
            }
        }
        Leaves { by_name }
    }

    fn get(&self, op: &Op) -> Option<Value> {
        self.by_name.get(&leaf_name(op)?).copied()
    }
}

/// Per value of the programs, the last region that uses it; beyond all for what the caller gets.
fn last_use(programs: &Graph, regions: &Regions) -> Vec<usize> {
    let mut out = vec![0; programs.values().len()];
    for (inst, data) in programs.insts() {
        for v in &data.operands {
            let last = &mut out[v.index()];
            *last = regions.of[inst.index()].max(*last);
        }
    }
    for output in &programs.outputs {
        out[output.value().index()] = usize::MAX;
        if let Output::State { state, .. } = output {
            out[state.index()] = usize::MAX;
        }
    }
    out
}

/// Checks that every output of the model is there, and is what it says.
fn outputs(
    model: &Graph,
    programs: &Graph,
    leaves: &Leaves<'_>,
    known: &Known,
) -> Result<(), Box<Refutation>> {
    // Where an output is another value of the model, a leaf may be the wrong one.
    let failed = |at: Option<Inst>, what: Unproven| {
        let leaf = at.and_then(|at| parts_of_leaves::misfit(programs, model, leaves, at));
        Err(match leaf {
            Some(leaf) => Refutation::at(programs, leaf, Unproven::Part),
            None => Refutation::of_output(programs, at, what),
        })
    };
    let mut renewed: HashMap<Value, Value> = HashMap::new();
    let mut named: HashMap<&str, Value> = HashMap::new();
    for output in &model.outputs {
        match output {
            Output::Named(name, v) => {
                named.insert(name, *v);
            }
            Output::State { state, value } => {
                let leaf = leaves.get(model.def_op(*state)).unwrap_or(*state);
                renewed.insert(leaf, *value);
            }
        }
    }
    let mut given = Vec::new();
    let mut updated = std::collections::HashSet::new();
    for output in &programs.outputs {
        let at = Some(programs.value(output.value()).def.0);
        match output {
            Output::Named(name, v) => {
                let Some(&expected) = named.get(name.as_str()) else {
                    return failed(at, Unproven::Output { name: name.clone() });
                };
                if !known.is(*v, expected, None) {
                    return failed(at, Unproven::Output { name: name.clone() });
                }
                given.push(name.as_str());
            }
            Output::State { state, value } => {
                let name = match programs.def_op(*state) {
                    Op::State(s) => s.name.clone(),
                    _ => programs.value(*state).name.clone(),
                };
                let right = match (known.form(*state), programs.def_op(*state)) {
                    (Some(Form::Part { model, view }), Op::State(_)) => renewed
                        .get(model)
                        .is_some_and(|&e| known.is(*value, e, view.as_ref())),
                    (Some(Form::Nothing(ty)), op @ Op::State(_)) => {
                        leaves
                            .get(op)
                            .is_some_and(|leaf| renewed.contains_key(&leaf))
                            && known.form(*value) == Some(&Form::Nothing(ty.clone()))
                    }
                    _ => false,
                };
                if !right {
                    return failed(at, Unproven::State { name });
                }
                updated.insert(*state);
            }
        }
    }
    for output in &model.outputs {
        if let Output::Named(name, _) = output
            && !given.contains(&name.as_str())
        {
            return failed(None, Unproven::Missing { name: name.clone() });
        }
    }
    // A part of a state that is read but not renewed would be stale with the next batch.
    for (inst, data) in programs.insts() {
        if let (Op::State(s), Some(&v)) = (&data.op, data.results.first()) {
            let kept = leaves
                .get(&data.op)
                .is_some_and(|leaf| renewed.contains_key(&leaf));
            if kept && !updated.contains(&v) {
                let name = s.name.clone();
                return failed(Some(inst), Unproven::Stale { name });
            }
        }
    }
    Ok(())
}
