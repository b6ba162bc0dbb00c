//! Knowledge: proved facts about values of earlier sections.

use std::collections::BTreeMap;

use tpc_ir::{Graph, Inst, TensorType, Value};

use super::boundary::Boundary;
use super::language::View;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Counterpart {
    Part {
        model: Value,
        /// The part; `None` for the whole value.
        view: Option<View>,
    },
    Empty(TensorType),
}

#[derive(Debug)]
pub(super) struct Knowledge {
    counterparts: Vec<Vec<Counterpart>>,
    /// The first value of the model known to be equal, per value of the model.
    same: Vec<Value>,
}

impl Knowledge {
    pub(super) fn new(model: &Graph, programs: &Graph) -> Knowledge {
        Knowledge {
            counterparts: vec![Vec::new(); programs.values().len()],
            same: model.values().map(|(v, _)| v).collect(),
        }
    }

    /// Returns the counterpart nearest to the model.
    pub(super) fn counterpart(&self, v: Value) -> Option<&Counterpart> {
        self.counterparts[v.index()].first()
    }

    pub(super) fn representative(&self, v: Value) -> Value {
        self.same[v.index()]
    }

    /// True if `v` is the part `view` of the model's value `model`.
    pub(super) fn is(&self, v: Value, model: Value, view: Option<&View>) -> bool {
        self.counterparts[v.index()].iter().any(|f| match f {
            Counterpart::Part { model: m, view: v } => {
                *m == self.representative(model) && v.as_ref() == view
            }
            Counterpart::Empty(_) => false,
        })
    }

    pub(super) fn learn(
        &mut self,
        lemma: &Lemma,
        (model, of_model): (&Graph, &[Inst]),
        (programs, of_programs): (&Graph, &[Inst]),
        boundary: &Boundary,
    ) {
        let value = |r: ModelRef| match r {
            ModelRef::Internal(i, result) => model.inst(of_model[i]).results[result],
            ModelRef::External(n) => boundary.values[n],
        };
        for &(i, result, same) in &lemma.same {
            let v = model.inst(of_model[i]).results[result];
            self.same[v.index()] = value(same);
        }
        for (i, result, counterparts) in &lemma.counterparts {
            let v = programs.inst(of_programs[*i]).results[*result];
            let known = counterparts.iter().map(|c| match c {
                LocalCounterpart::Part { model, view } => Counterpart::Part {
                    model: self.representative(value(*model)),
                    view: view.clone(),
                },
                LocalCounterpart::Empty(ty) => Counterpart::Empty(ty.clone()),
            });
            self.counterparts[v.index()] = known.collect();
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ModelRef {
    /// The position of an instruction in the obligation, and its result.
    Internal(usize, usize),
    External(usize),
}

#[derive(Clone, Debug)]
pub(super) enum LocalCounterpart {
    Part { model: ModelRef, view: Option<View> },
    Empty(TensorType),
}

#[derive(Debug)]
pub(super) struct Lemma {
    /// Per live-out value of the programs: instruction, result, counterparts.
    pub(super) counterparts: Vec<(usize, usize, Vec<LocalCounterpart>)>,
    /// Values of the model that equal earlier ones: instruction, result, earlier value.
    pub(super) same: Vec<(usize, usize, ModelRef)>,
    pub(super) terms: usize,
    /// The number of equalities found by each rule.
    pub(super) found: BTreeMap<&'static str, u64>,
}
