//! The model's own views, sums, repetitions and set slices. The rules relate a device's part to these if the devices'
//! terms alone are ambiguous.

use egg::Id;
use tpc_ir::{Dim, Interval, Op, RANK};

use super::access::NumberedView;
use super::{MAX_VIEWS, Selection, TermGraph};
use crate::prove::language::{Head, Term};

#[derive(Clone, Debug)]
pub(in crate::prove) struct Repetition {
    pub(in crate::prove) selection: Selection,
    /// Per repeated axis: the axis, the number of copies, and the number of elements repeated together.
    pub(in crate::prove) copies: Vec<(usize, u64, Dim)>,
}

#[derive(Clone, Debug)]
pub(in crate::prove) struct ModelRepetition {
    pub(in crate::prove) result: Id,
    pub(in crate::prove) axes: Vec<(usize, u64)>,
}

impl TermGraph {
    pub(super) fn note_of_model(&mut self, op: &Op, of: Id, result: Id) {
        let list = match op {
            Op::Repeat(_) => &mut self.model.repetitions,
            Op::SetSlice(_) => &mut self.model.sets,
            _ => return,
        };
        if self.of_model && !list.contains(&(of, result)) {
            list.push((of, result));
        }
    }

    pub(super) fn note_slice(&mut self, base: Id, view: Id) {
        let base = self.graph.find(base);
        if self.of_model && self.notes_slices && self.model.known_slices.insert((base, view)) {
            self.model.slices.push((base, view));
        }
    }

    pub(in crate::prove) fn set_slices(&self) -> Vec<Op> {
        let ops = self.tables().ops.items();
        ops.filter(|op| matches!(op, Op::SetSlice(_)))
            .cloned()
            .collect()
    }

    pub(in crate::prove) fn model_sets(&self, of: Id) -> Vec<(Id, usize, Interval)> {
        let of = self.graph.find(of);
        let sets = self
            .model
            .sets
            .iter()
            .filter(|(x, _)| self.graph.find(*x) == of);
        let mut out = Vec::new();
        for &(_, set) in sets {
            for (op, _, args) in self.ops_of(set) {
                let (Op::SetSlice(op), &[x, y]) = (&*op, args.as_slice()) else {
                    continue;
                };
                let axis = usize::try_from(op.axis).ok().filter(|&a| a < RANK);
                let size = |a: usize| self.ty(y).and_then(|t| t.dims[a].as_const());
                if let (Some(axis), Some(start)) = (axis, op.start.as_const())
                    && let Some(len) = size(axis)
                    && self.graph.find(x) == of
                {
                    out.push((self.graph.find(set), axis, Interval { start, len }));
                }
            }
        }
        out
    }

    /// Returns the summands of an e-class that is a sum. For a value of the model, returns the model's summands.
    pub(in crate::prove) fn summands(&self, id: Id) -> Option<Vec<Id>> {
        let id = self.graph.find(id);
        if self.of_model || self.graph[id].data.model.is_some() {
            let own = self
                .model
                .sums
                .iter()
                .filter(|(sum, _)| self.graph.find(*sum) == id);
            return own
                .map(|(_, args)| args)
                .max_by_key(|args| args.len())
                .cloned();
        }
        let nodes = self.nodes(id);
        // `x + 0 = x` is a sum, too, but does not define `x`.
        let defines = |t: &&Term| t.args.iter().all(|&a| self.graph.find(a) != id);
        let mut sums = nodes.iter().filter(|t| t.head == Head::Sum);
        sums.find(defines).map(|t| t.args.to_vec())
    }

    /// Returns repetitions, with the model's repetition of the same base, reshaped or not.
    pub(in crate::prove) fn model_repetitions(&self, id: Id) -> Vec<(Repetition, ModelRepetition)> {
        if self.model.repetitions.is_empty() {
            return Vec::new();
        }
        let own = self.graph.find(id);
        let mut out = Vec::new();
        for local in self.repetitions(id) {
            self.charge(self.model.repetitions.len() / 4);
            for &(of, all) in &self.model.repetitions {
                if self.graph.find(of) != local.selection.base {
                    continue;
                }
                let Some(axes) = self.copies(of, all) else {
                    continue;
                };
                let reshaped = self.model_slices(all).into_iter();
                let reshaped = reshaped.filter(|(_, view)| view.1.indices.is_empty());
                let reshaped = reshaped.map(|(id, _)| id);
                for result in std::iter::once(self.graph.find(all)).chain(reshaped) {
                    if result != own {
                        let axes = axes.clone();
                        out.push((local.clone(), ModelRepetition { result, axes }));
                    }
                }
            }
        }
        out
    }

    fn repetitions(&self, id: Id) -> Vec<Repetition> {
        let selections = self.selections(id);
        let reshaped = selections.iter().filter(|s| s.indices().is_empty());
        let mut out = Vec::new();
        for all in reshaped.map(|s| s.base) {
            for (op, _, args) in self.ops_of(all) {
                let (Op::Repeat(_), &[of]) = (&*op, args.as_slice()) else {
                    continue;
                };
                let Some((axes, ty)) = self.copies(of, all).zip(self.ty(of)) else {
                    continue;
                };
                let unit = |a: usize| Dim::product(&ty.dims[..=a]);
                let copies: Option<Vec<_>> =
                    axes.iter().map(|&(a, n)| Some((a, n, unit(a)?))).collect();
                if let Some(copies) = copies {
                    out.extend(self.selections(of).into_iter().map(|selection| Repetition {
                        selection,
                        copies: copies.clone(),
                    }));
                }
            }
        }
        out.extend(selections.into_iter().map(|selection| Repetition {
            selection,
            copies: Vec::new(),
        }));
        out
    }

    fn copies(&self, of: Id, all: Id) -> Option<Vec<(usize, u64)>> {
        let (of, all) = (self.ty(of)?, self.ty(all)?);
        let axes = (0..RANK).filter(|&a| of.dims[a] != all.dims[a]);
        let times = |a: usize| all.dims[a].checked_div(&of.dims[a])?.as_const();
        axes.map(|a| Some((a, times(a)?))).collect()
    }

    pub(super) fn model_slices(&self, base: Id) -> Vec<(Id, NumberedView)> {
        let base = self.graph.find(base);
        let mut out = Vec::new();
        self.steps.add(self.model.slices.len() / 16);
        for &(of, slice) in &self.model.slices {
            if out.len() >= MAX_VIEWS {
                break;
            }
            if self.graph.find(of) == base {
                let slice = self.graph.find(slice);
                for (view, b) in self.numbered_views_of(slice, MAX_VIEWS) {
                    if b == base {
                        out.push((slice, view));
                    }
                }
            }
        }
        out
    }
}
