//! Finds the terms of an e-class by kind: ops, views, masks, zeros.

use std::cmp::Reverse;
use std::rc::Rc;

use egg::Id;
use tpc_ir::{Dim, Op, RANK, TensorType};

use super::{AXES, COMPOSED, INTERVALS, MAX_VIEWS, TermGraph};
use crate::prove::analysis::is_defined;
use crate::prove::index_set::{
    IndexSet, NotExpressible, Pattern, compose, from_axes, quotient, selected_dims,
};
use crate::prove::interner::Tables;
use crate::prove::language::{Args, Head, Mask, Term, View};

#[derive(Clone, Debug)]
pub(in crate::prove) struct Selection {
    pub(in crate::prove) base: Id,
    view: Option<NumberedView>,
}

pub(in crate::prove) type NumberedView = (u32, Rc<View>);

impl Selection {
    pub(in crate::prove) fn whole(base: Id) -> Selection {
        Selection { base, view: None }
    }

    pub(in crate::prove) fn indices(&self) -> &[Pattern] {
        self.view.as_ref().map_or(&[], |(_, view)| &view.indices)
    }

    /// Returns the view's number; `None` for the whole base.
    pub(in crate::prove) fn view(&self) -> Option<u32> {
        self.view.as_ref().map(|v| v.0)
    }
}

impl TermGraph {
    pub(in crate::prove) fn is_model(&self, id: Id) -> bool {
        self.model_number(id).is_some()
    }

    pub(in crate::prove) fn model_number(&self, id: Id) -> Option<u32> {
        self.graph[self.graph.find(id)].data.model
    }

    pub(in crate::prove) fn nodes(&self, id: Id) -> Rc<[Term]> {
        self.nodes_with(id, |_| true).into()
    }

    fn nodes_with(&self, id: Id, wanted: impl Fn(Head) -> bool) -> Vec<Term> {
        let all = &self.graph[self.graph.find(id)].nodes;
        self.steps.add(all.len());
        let mut nodes: Vec<Term> = all.iter().filter(|t| wanted(t.head)).cloned().collect();
        for term in &mut nodes {
            self.settle(term);
        }
        nodes.sort();
        nodes.dedup();
        nodes
    }

    pub(in crate::prove) fn ty(&self, id: Id) -> Option<&TensorType> {
        self.graph[self.graph.find(id)].data.ty.as_ref()
    }

    pub(in crate::prove) fn tables(&self) -> &Tables {
        &self.graph.analysis.tables
    }

    pub(in crate::prove) fn op(&self, number: u32) -> &Op {
        self.tables().ops.get(number)
    }

    pub(in crate::prove) fn op_of(&self, term: &Term) -> Option<(Rc<Op>, u8)> {
        match term.head {
            Head::Op { op, result } => Some((self.tables().ops.share(op), result)),
            _ => None,
        }
    }

    pub(in crate::prove) fn view_of(&self, term: &Term) -> Option<Rc<View>> {
        self.numbered_view_of(term).map(|(_, view)| view)
    }

    pub(in crate::prove) fn numbered_view_of(&self, term: &Term) -> Option<NumberedView> {
        let Head::View(number) = term.head else {
            return None;
        };
        let view = self.tables().views.share(number);
        // The caller visits all intervals.
        self.charge(intervals(&view.indices) / INTERVALS);
        Some((number, view))
    }

    /// Charges the steps of finding the axes of an index set.
    pub(in crate::prove) fn charge_axes(&self, indices: &[Pattern]) {
        self.charge(AXES + intervals(indices) / INTERVALS);
    }

    /// Charges the steps of composing index sets, which uses binary search for intervals.
    pub(in crate::prove) fn charge_composition(&self, inner: &[Pattern], outer: &[Pattern]) {
        let n = intervals(inner) + intervals(outer);
        self.charge(n * n.max(1).ilog2() as usize / COMPOSED);
    }

    /// Returns ops with result index and arguments.
    pub(in crate::prove) fn ops_of(&self, id: Id) -> Vec<(Rc<Op>, u8, Args)> {
        let nodes = self.nodes_with(id, |head| matches!(head, Head::Op { .. }));
        let ops = nodes.into_iter().filter_map(|t| match t.head {
            Head::Op { op, result } => Some((self.tables().ops.share(op), result, t.args)),
            _ => None,
        });
        ops.collect()
    }

    /// Returns masks with the masked value and the indices.
    pub(in crate::prove) fn masks_of(&self, id: Id) -> Vec<(Mask, Id, Id)> {
        let nodes = self.nodes_with(id, |head| matches!(head, Head::Mask(_)));
        let found = nodes.iter().filter_map(|t| match t.head {
            Head::Mask(w) => Some((w, t.args[0], t.args[1])),
            _ => None,
        });
        found.collect()
    }

    pub(in crate::prove) fn is_zero(&self, id: Id) -> bool {
        let nodes = &self.graph[self.graph.find(id)].nodes;
        self.steps.add(nodes.len());
        nodes.iter().any(|t| matches!(t.head, Head::Zero(_)))
    }

    pub(in crate::prove) fn is_number(&self, id: Id) -> bool {
        self.graph[self.graph.find(id)].data.number
    }

    /// True if an op is defined on these operands, because the model applies it to them.
    pub(in crate::prove) fn is_defined(&self, op: &Op, args: &[Id]) -> bool {
        is_defined(&self.graph, op, args)
    }

    pub(in crate::prove) fn add_op(&mut self, op: &Op, result: u8, args: Vec<Id>) -> Id {
        let of = args.first().copied();
        let number = self.graph.analysis.tables.ops.intern(op);
        let id = self.add(Head::Op { op: number, result }, args);
        if let Some(of) = of {
            self.note_of_model(op, of, id);
        }
        id
    }

    pub(in crate::prove) fn lookup_op(&mut self, op: &Op, result: u8, args: Vec<Id>) -> Option<Id> {
        let op = self.graph.analysis.tables.ops.intern(op);
        self.lookup(Head::Op { op, result }, args)
    }

    pub(in crate::prove) fn sum(&mut self, args: Vec<Id>) -> Id {
        match args.as_slice() {
            [one] => *one,
            _ => self.add(Head::Sum, args),
        }
    }

    pub(in crate::prove) fn zero(&mut self, ty: &TensorType) -> Id {
        let ty = self.graph.analysis.tables.types.intern(ty);
        self.add(Head::Zero(ty), Vec::new())
    }

    pub(in crate::prove) fn view(&mut self, base: Id, indices: IndexSet, dims: [Dim; RANK]) -> Id {
        let number = self.number_of(&View { indices, dims });
        self.numbered_view(base, number)
    }

    fn number_of(&mut self, view: &View) -> u32 {
        let views = &mut self.graph.analysis.tables.views;
        let known = views.items().len();
        let number = views.intern(view);
        if views.items().len() > known {
            self.segments.add(intervals(&view.indices));
        }
        number
    }

    fn numbered_view(&mut self, base: Id, number: u32) -> Id {
        let view = self.tables().views.get(number);
        let full = view.indices.is_empty() && self.ty(base).is_some_and(|t| t.dims == view.dims);
        if full {
            return self.graph.find(base);
        }
        self.steps.add(intervals(&view.indices));
        let id = self.add(Head::View(number), vec![base]);
        self.note_slice(base, id);
        id
    }

    pub(in crate::prove) fn on_axis(
        &mut self,
        base: Id,
        axis: usize,
        pattern: Option<Pattern>,
    ) -> Result<Id, NotExpressible> {
        let dims = &self.ty(base).ok_or(NotExpressible)?.dims;
        let mut axes = [None, None, None, None];
        axes[axis] = pattern;
        let indices = from_axes(&axes, dims)?;
        let dims = selected_dims(&axes, dims)?;
        Ok(self.view(base, indices, dims))
    }

    pub(in crate::prove) fn views_of(&self, id: Id) -> Vec<(Rc<View>, Id)> {
        let views = self.numbered_views_of(id, MAX_VIEWS).into_iter();
        views.map(|((_, view), base)| (view, base)).collect()
    }

    pub(in crate::prove) fn all_views_of(&self, id: Id) -> Vec<(Rc<View>, Id)> {
        let views = self.numbered_views_of(id, usize::MAX).into_iter();
        views.map(|((_, view), base)| (view, base)).collect()
    }

    pub(super) fn numbered_views_of(&self, id: Id, most: usize) -> Vec<(NumberedView, Id)> {
        let nodes = self.nodes_with(id, |head| matches!(head, Head::View(_)));
        let views = nodes
            .iter()
            .take(most)
            .filter_map(|t| Some((self.numbered_view_of(t)?, t.args[0])));
        views.collect()
    }

    /// Returns the selections that an e-class equals, including the whole e-class, nearest to the model first.
    pub(in crate::prove) fn selections(&self, id: Id) -> Vec<Selection> {
        let id = self.graph.find(id);
        let mut out: Vec<Selection> = self
            .numbered_views_of(id, MAX_VIEWS)
            .into_iter()
            .map(|(view, base)| Selection {
                base,
                view: Some(view),
            })
            .filter(|f| f.base != id)
            .collect();
        out.push(Selection::whole(id));
        out.sort_by_key(|f| {
            let data = &self.graph[f.base].data;
            (data.model.is_none(), f.indices().len(), Reverse(data.age))
        });
        out
    }

    pub(in crate::prove) fn add_compositions(&mut self, outer: &NumberedView, of: Id) -> Vec<Id> {
        let mut out = Vec::new();
        for (inner, base) in self.numbered_views_of(of, MAX_VIEWS) {
            let pair = (inner.0, outer.0);
            let one = self.relations.known_composition(pair).unwrap_or_else(|| {
                self.charge_composition(&inner.1.indices, &outer.1.indices);
                let indices = compose(&inner.1.indices, &outer.1.indices).ok();
                self.number_of_selection(indices, &outer.1)
            });
            self.relations.keep_composition(pair, one);
            out.extend(one.map(|one| self.numbered_view(base, one)));
        }
        out
    }

    /// Expresses a view of `of` as a view of each slice of `of` that the model has, except the slice `but`.
    pub(in crate::prove) fn add_quotients(
        &mut self,
        view: &NumberedView,
        of: Id,
        but: Id,
    ) -> Vec<Id> {
        let mut out = Vec::new();
        for (slice, held) in self.model_slices(of) {
            if slice == but {
                continue;
            }
            let rest = self.quotient_of(&held, view);
            out.extend(rest.map(|rest| self.numbered_view(slice, rest)));
        }
        out
    }

    /// Expresses a view of a concatenation as a view of the operand at the indices `segment`; `None` if the view selects
    /// from other operands, too.
    pub(in crate::prove) fn add_view_of_segment(
        &mut self,
        view: &NumberedView,
        segment: IndexSet,
        operand: Id,
    ) -> Option<Id> {
        let dims = self.ty(operand)?.dims.clone();
        let held = self.number_of(&View {
            indices: segment,
            dims,
        });
        let held = (held, self.tables().views.share(held));
        let rest = self.quotient_of(&held, view);
        Some(self.numbered_view(operand, rest?))
    }

    /// Returns the number of the view that selects `view` from the selection `held`.
    fn quotient_of(&mut self, held: &NumberedView, view: &NumberedView) -> Option<u32> {
        let pair = (held.0, view.0);
        let rest = self.relations.known_quotient(pair).unwrap_or_else(|| {
            self.charge_composition(&held.1.indices, &view.1.indices);
            let indices = quotient(&held.1.indices, &view.1.indices).ok();
            self.number_of_selection(indices, &view.1)
        });
        self.relations.keep_quotient(pair, rest);
        rest
    }

    fn number_of_selection(&mut self, indices: Option<IndexSet>, sizes: &View) -> Option<u32> {
        let dims = sizes.dims.clone();
        indices.map(|indices| self.number_of(&View { indices, dims }))
    }
}

fn intervals(indices: &[Pattern]) -> usize {
    indices.iter().map(|p| p.intervals.len()).sum()
}
