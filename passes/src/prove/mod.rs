//! # The proof: what the devices compute is what the model says
//!
//! [`prove`] takes the model's graph and the programs of all devices, and nothing else: neither the plan nor the sharded
//! graph, nor any analysis that led to them. Of `tpc-ir` it uses the ops' definitions alone: their types, their rules and
//! how their indices meet.
//!
//! Both graphs are cut into sections, of which a layer is one (`sections.rs`). Each section is an obligation, proved in an
//! e-graph of its own:
//!
//! 1. The model's values become terms (`language.rs`, `encoding.rs`).
//! 2. The programs' values become terms of the same e-graph, in program order. A device's weight is a *view* `w[p]` of the
//!    model's weight, a copy is its operand, an all-reduce is a sum of its operands, an all-gather a concatenation. The
//!    [rules](rules()) say which terms are equal: `f(x[p]) = f(x)[r]`, `Σ mul_mat(w[pᵢ], x[pᵢ]) = mul_mat(w, x)` and so on.
//!    The proof has no expectation of a device's value: it ends up in the e-class of the model's value, or it does not.
//! 3. A value that later sections use must be the model's value or a view of one (`lemma.rs`); so must every output
//!    (`outputs.rs`).
//!
//! A sum that one section begins and the next one ends makes the two one obligation. Obligations that are equal but for names
//! are proved once (`signature.rs`). Numbers are real numbers here: the order of a sum does not matter, as it does in floating
//! point. Sizes are symbols, so a proof holds for every number of tokens and cells.
//!
//! A proof that fails names the first op whose value is not justified, with the words of `diagnose/`.

mod analysis;
mod boundary;
mod diagnose;
mod encoding;
mod index_set;
mod interner;
mod justification;
mod knowledge;
mod language;
mod leaves;
mod lemma;
mod obligation;
mod outputs;
mod readings;
mod refutation;
mod relate;
mod rules;
mod sections;
mod signature;
mod structure;
mod term_graph;

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use tpc_ir::{Graph, Verified, stage};

pub use refutation::{Refutation, Unproven};

use interner::Tables;
use knowledge::{Knowledge, Lemma};
use leaves::Leaves;
use lemma::Failure;
use obligation::Obligation;
use outputs::Outputs;
use sections::Sections;

/// A proof that programs compute what a model says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proof {
    /// The number of sections of the model.
    pub sections: usize,
    /// The number of obligations that were proved; all others are equal to one of these but for names.
    pub distinct: usize,
    /// The number of terms of the largest e-graph.
    pub terms: usize,
    /// How often each rule found terms equal.
    pub rules: BTreeMap<&'static str, u64>,
}

/// The names and equations of the proof's rules.
pub fn rules() -> impl Iterator<Item = (&'static str, &'static str)> {
    rules::RULES.iter().map(|r| (r.name, r.equation))
}

/// Proves that `programs` compute what `model` says.
///
/// # Errors
/// The first op whose value cannot be justified.
pub fn prove(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
) -> Result<Proof, Box<Refutation>> {
    prove_without(model, programs, None)
}

/// [`prove`] without the rule of that name, to see what needs it.
///
/// # Errors
/// The first op whose value cannot be justified.
pub fn prove_without(
    model: &Verified<stage::Model>,
    programs: &Verified<stage::Programs>,
    without: Option<&str>,
) -> Result<Proof, Box<Refutation>> {
    structure::check(programs)?;
    let leaves = Leaves::new(model);
    let count = sections::count([model, programs]);
    let model_sections = Sections::new(model, count);
    let program_sections = Sections::new(programs, count);
    let last_use = program_sections.last_use(programs);
    let mut known = Knowledge::new(model, programs);
    let mut lemmas = Lemmas {
        without,
        tables: Tables::default(),
        by_signature: HashMap::new(),
        proof: Proof {
            sections: count,
            ..Proof::default()
        },
    };
    let (mut from, mut to) = (0, 1);
    while from < count {
        let of_model = model_sections.together(from..to);
        let of_programs = program_sections.together(from..to);
        let task = Obligation {
            model,
            programs,
            leaves: &leaves,
            known: &known,
            of_model: &of_model,
            of_programs: &of_programs,
            section_of: &model_sections.of,
            sections: from..to,
            last_use: &last_use,
        };
        let (signature, boundary) = signature::sign(&task, &mut lemmas.tables)?;
        match lemmas.find(signature, to < count, |without| {
            lemma::prove(&task, &boundary, without)
        })? {
            // A sum is done in the next section: both are proved together.
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

/// The lemmas proved so far, and the proof that they make.
struct Lemmas<'a> {
    without: Option<&'a str>,
    tables: Tables,
    /// Per signature, its lemma; `None` for obligations that have no proof without the next section.
    by_signature: HashMap<Vec<u32>, Option<Lemma>>,
    proof: Proof,
}

impl Lemmas<'_> {
    /// The lemma of a signature, proved by `prove` unless it is known. `None` where a sum is done in the next section.
    fn find(
        &mut self,
        signature: Vec<u32>,
        has_next: bool,
        prove: impl FnOnce(Option<&str>) -> Result<Lemma, Failure>,
    ) -> Result<Option<&Lemma>, Box<Refutation>> {
        let lemma = match self.by_signature.entry(signature) {
            // The last section has no next one, whatever was noted of those before it.
            Entry::Occupied(e) if e.get().is_some() || has_next => e.into_mut(),
            entry => {
                let lemma = match prove(self.without) {
                    Ok(lemma) => Some(lemma),
                    Err(Failure::Crossing(_)) if has_next => None,
                    Err(Failure::Crossing(r) | Failure::Refuted(r)) => return Err(r),
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
