//! Justification: finds values of the programs that are values of the model or parts of them.

use egg::Id;
use tpc_ir::Value;

use super::encoding::Encoding;
use super::index_set::IndexSet;
use super::knowledge::{LocalCounterpart, ModelRef};
use super::language::is_empty;

impl Encoding<'_> {
    pub(super) fn model_of(&self, id: Id) -> Option<Value> {
        let number = self.terms.model_number(id)?;
        Some(match self.numbers[number as usize] {
            ModelRef::Internal(i, r) => self.task.model.inst(self.task.of_model[i]).results[r],
            ModelRef::External(n) => self.boundary.values[n],
        })
    }

    pub(super) fn is_justified(&self, v: Value) -> bool {
        let id = self.programs.get(&v);
        id.is_some_and(|&id| !self.counterparts(id).is_empty())
    }

    /// True if a value is the model's value of the same name, or a part of it. Also true for unknown names, and if the
    /// steps run out.
    pub(super) fn has_its_name(&self, v: Value) -> bool {
        if !self.charge_scan() {
            return true;
        }
        let (programs, model) = (self.task.programs, self.task.model);
        let name = &programs.value(v).name;
        let graph = &self.terms.graph;
        let own = self.programs.get(&v).map(|&id| graph.find(id));
        let bases = own.iter().flat_map(|&id| self.terms.all_views_of(id));
        let bases: Vec<Id> = bases.map(|(_, b)| graph.find(b)).chain(own).collect();
        let mut of_that_name = self
            .model
            .iter()
            .filter(|(m, _)| model.value(**m).name == *name)
            .map(|(_, &id)| graph.find(id))
            .peekable();
        of_that_name.peek().is_none() || of_that_name.any(|id| bases.contains(&id))
    }

    pub(super) fn parts_of_model(&self, v: Value) -> Vec<(Value, IndexSet)> {
        let Some(&id) = self.programs.get(&v) else {
            return Vec::new();
        };
        let views = self.terms.all_views_of(id).into_iter();
        let views = views.filter_map(|(v, base)| Some((self.model_of(base)?, v.indices.clone())));
        views
            .chain(self.model_of(id).map(|v| (v, IndexSet::new())))
            .collect()
    }

    /// Returns the model's value of an e-class. If there is none, returns the model's values that the e-class is a view
    /// of, in the model's order.
    pub(super) fn counterparts(&self, id: Id) -> Vec<LocalCounterpart> {
        if let Some(n) = self.terms.model_number(id) {
            let model = self.numbers[n as usize];
            return vec![LocalCounterpart::Part { model, view: None }];
        }
        if let Some(ty) = self.terms.ty(id).filter(|t| is_empty(t)) {
            return vec![LocalCounterpart::Empty(ty.clone())];
        }
        let views = self.terms.all_views_of(id).into_iter();
        let mut of_model: Vec<_> = views
            .filter_map(|(v, base)| Some((self.terms.model_number(base)?, v)))
            .collect();
        of_model.sort_by_key(|(n, v)| (*n, v.indices.len()));
        let counterparts = of_model.into_iter().map(|(n, v)| LocalCounterpart::Part {
            model: self.numbers[n as usize],
            view: Some((*v).clone()),
        });
        counterparts.collect()
    }
}
