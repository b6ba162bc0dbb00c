//! Checks that the programs produce the model's outputs and state updates.

use std::collections::{HashMap, HashSet};

use tpc_ir::{Graph, Inst, Op, Output, Value};

use super::diagnose;
use super::knowledge::{Counterpart, Knowledge};
use super::leaves::Leaves;
use super::refutation::{Refutation, RefutationReason};

pub(super) struct Outputs<'a> {
    model: &'a Graph,
    programs: &'a Graph,
    leaves: &'a Leaves<'a>,
    known: &'a Knowledge,
    named: HashMap<&'a str, Value>,
    renewed: HashMap<Value, Value>,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(
        model: &'a Graph,
        programs: &'a Graph,
        leaves: &'a Leaves<'a>,
        known: &'a Knowledge,
    ) -> Outputs<'a> {
        let mut named = HashMap::new();
        let mut renewed = HashMap::new();
        for output in &model.outputs {
            match output {
                Output::Named(name, v) => {
                    named.insert(name.as_str(), *v);
                }
                Output::State { state, value } => {
                    let leaf = leaves.get(model.def_op(*state)).unwrap_or(*state);
                    renewed.insert(leaf, *value);
                }
            }
        }
        Outputs {
            model,
            programs,
            leaves,
            known,
            named,
            renewed,
        }
    }

    pub(super) fn check(&self) -> Result<(), Box<Refutation>> {
        let mut given = HashSet::new();
        let mut updated = HashSet::new();
        for output in &self.programs.outputs {
            let at = Some(self.programs.value(output.value()).def.0);
            match output {
                Output::Named(name, v) => {
                    let expected = self.named.get(name.as_str());
                    if !expected.is_some_and(|&e| self.known.is(*v, e, None)) {
                        return Err(self.fault(at, RefutationReason::Output { name: name.clone() }));
                    }
                    given.insert(name.as_str());
                }
                Output::State { state, value } => {
                    if !self.is_renewed(*state, *value) {
                        let name = match self.programs.def_op(*state) {
                            Op::State(s) => s.name.clone(),
                            _ => self.programs.value(*state).name.clone(),
                        };
                        return Err(self.fault(at, RefutationReason::State { name }));
                    }
                    updated.insert(*state);
                }
            }
        }
        for output in &self.model.outputs {
            if let Output::Named(name, _) = output
                && !given.contains(name.as_str())
            {
                return Err(self.fault(None, RefutationReason::Missing { name: name.clone() }));
            }
        }
        self.check_stale(&updated)
    }

    /// True if `value` is the same part of the state's new content as `state` is of the model's state.
    fn is_renewed(&self, state: Value, value: Value) -> bool {
        let op = self.programs.def_op(state);
        let empty = |ty| Some(&Counterpart::Empty(ty)) == self.known.counterpart(value);
        match self.known.counterpart(state) {
            _ if !matches!(op, Op::State(_)) => false,
            Some(Counterpart::Part { model, view }) => self
                .renewed
                .get(model)
                .is_some_and(|&e| self.known.is(value, e, view.as_ref())),
            Some(Counterpart::Empty(ty)) => {
                let leaf = self.leaves.get(op);
                leaf.is_some_and(|leaf| self.renewed.contains_key(&leaf)) && empty(ty.clone())
            }
            None => false,
        }
    }

    /// Checks that each part of an updated state is updated; otherwise it would be stale in the next batch.
    fn check_stale(&self, updated: &HashSet<Value>) -> Result<(), Box<Refutation>> {
        for (inst, data) in self.programs.insts() {
            if let (Op::State(s), Some(v)) = (&data.op, data.results.first()) {
                let leaf = self.leaves.get(&data.op);
                let renewed = leaf.is_some_and(|leaf| self.renewed.contains_key(&leaf));
                if renewed && !updated.contains(v) {
                    let name = s.name.clone();
                    return Err(self.fault(Some(inst), RefutationReason::Stale { name }));
                }
            }
        }
        Ok(())
    }

    fn fault(&self, at: Option<Inst>, what: RefutationReason) -> Box<Refutation> {
        let leaf =
            at.and_then(|at| diagnose::suspect_leaf(self.programs, self.model, self.leaves, at));
        match leaf {
            Some(leaf) => Refutation::at(self.programs, leaf, RefutationReason::Part),
            None => Refutation::of_output(self.programs, at, what),
        }
    }
}
