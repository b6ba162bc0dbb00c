//! Proves obligations in program order, each distinct one once.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use tpc_ir::{Budget, Graph, OpLocation, Resource, Verified, stage};

use super::interner::Tables;
use super::knowledge::{Knowledge, Lemma};
use super::leaves::Leaves;
use super::lemma::{self, Failure};
use super::obligation::Obligation;
use super::outputs::Outputs;
use super::refutation::{Refutation, RefutationReason};
use super::rules::RULES;
use super::sections::{Cut, Sections};
use super::{finite, signature, structure};

/// A successful proof that programs compute a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The number of sections of the model.
    pub sections: usize,
    /// The number of proved obligations. Every other obligation equals one of them except for names.
    pub distinct: usize,
    /// The number of terms of the largest e-graph.
    pub terms: usize,
    /// The number of equalities found by each rule.
    pub rules: BTreeMap<&'static str, u64>,
}

/// Returns the names and equations of the proof's rules.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    RULES.iter().map(|r| (r.name, r.equation))
}

/// Proves that `programs` compute `model`.
///
/// # Errors
/// Returns the first op whose value cannot be justified.
pub fn prove(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
) -> Result<Proof, Box<Refutation>> {
    prove_without(model, programs, None)
}

/// Proves within a budget.
///
/// # Errors
/// Returns the first op that cannot be justified or that exhausts the budget. [`Budget::first_overrun`] then has the
/// resource.
pub fn prove_within(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
    budget: &Budget,
) -> Result<Proof, Box<Refutation>> {
    run(model, programs, None, budget).map_err(|mut r| {
        if r.what == RefutationReason::Limit {
            let over = |r: &&Resource| budget.remaining(**r) == 0;
            let resource = Resource::ALL.iter().find(over).unwrap_or(&Resource::Terms);
            let spot = || {
                Some(OpLocation {
                    op: r.op.clone(),
                    value: r.value.clone(),
                    layer: r.layer,
                })
            };
            let spent = budget.spend(*resource, u64::MAX, "the proof", spot);
            r.what = spent.map_or_else(RefutationReason::Budget, |()| RefutationReason::Limit);
        }
        r
    })
}

/// Proves without the rule named `rule`, to show which proofs need it.
///
/// # Errors
/// Returns the first op whose value cannot be justified.
pub fn prove_without(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
    without: Option<&str>,
) -> Result<Proof, Box<Refutation>> {
    run(model, programs, without, &Budget::default())
}

fn run(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
    without: Option<&str>,
    budget: &Budget,
) -> Result<Proof, Box<Refutation>> {
    // The model is the same for any sizes, so also for caches of whole units.
    let in_units;
    let mut model: &Graph = model;
    if programs.cell_unit != model.cell_unit {
        let what = || RefutationReason::Model {
            op: "cells",
            value: String::new(),
        };
        let converted = model.in_units(programs.cell_unit.0);
        in_units = converted.ok_or_else(|| Refutation::of_output(programs, None, what()))?;
        model = &in_units;
    }
    structure::check_model(model, programs)?;
    structure::check(programs)?;
    let leaves = Leaves::new(model);
    let numbers = finite::numbers(model);
    let cut = Cut::new([model, programs]);
    let count = cut.count();
    let model_sections = Sections::new(model, &cut);
    let program_sections = Sections::new(programs, &cut);
    let last_use = program_sections.last_use(programs);
    let mut known = Knowledge::new(model, programs);
    let mut lemmas = Lemmas {
        without,
        tables: Tables::default(),
        by_signature: FxHashMap::default(),
        proof: Proof {
            sections: count,
            ..Proof::default()
        },
    };
    let (mut from, mut to) = (0, 1);
    while from < count {
        let of_model = model_sections.insts_of(from..to);
        let of_programs = program_sections.insts_of(from..to);
        let task = Obligation {
            model,
            programs,
            leaves: &leaves,
            numbers: &numbers,
            known: &known,
            of_model: &of_model,
            of_programs: &of_programs,
            section_of: &model_sections.of,
            sections: from..to,
            last_use: &last_use,
        };
        let (signature, boundary) = signature::sign(&task, &mut lemmas.tables)?;
        let has_next = to < count;
        match lemmas.find(signature, has_next, |without| {
            lemma::prove(&task, &boundary, has_next, without, budget)
        })? {
            None => to += 1,
            Some(lemma) => {
                let model: (&Graph, _) = (model, &*of_model);
                let programs: (&Graph, _) = (programs, &*of_programs);
                known.learn(lemma, model, programs, &boundary);
                (from, to) = (to, to + 1);
            }
        }
    }
    Outputs::new(model, programs, &leaves, &known).check()?;
    Ok(lemmas.proof)
}

struct Lemmas<'a> {
    without: Option<&'a str>,
    tables: Tables,
    /// The lemma per signature; `None` for obligations that need the next section.
    by_signature: FxHashMap<Vec<u32>, Option<Lemma>>,
    proof: Proof,
}

impl Lemmas<'_> {
    /// Returns the lemma of a signature; calls `prove` for a new signature. `None` if a sum of this section ends in the
    /// next one.
    fn find(
        &mut self,
        signature: Vec<u32>,
        has_next: bool,
        prove: impl FnOnce(Option<&str>) -> Result<Lemma, Failure>,
    ) -> Result<Option<&Lemma>, Box<Refutation>> {
        let lemma = match self.by_signature.entry(signature) {
            // The last section cannot reuse a `None`, because it has no next section.
            Entry::Occupied(e) if e.get().is_some() || has_next => e.into_mut(),
            entry => {
                let lemma = match prove(self.without) {
                    Ok(lemma) => Some(lemma),
                    Err(Failure::Crossing) => None,
                    Err(Failure::Refuted(r)) => return Err(r),
                };
                self.proof.distinct += 1;
                for (&rule, n) in lemma.iter().flat_map(|l| &l.found) {
                    *self.proof.rules.entry(rule).or_default() += n;
                }
                let terms = lemma.as_ref().map_or(0, |l| l.terms);
                self.proof.terms = self.proof.terms.max(terms);
                entry.insert_entry(lemma).into_mut()
            }
        };
        Ok(lemma.as_ref())
    }
}
