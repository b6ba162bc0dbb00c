//! The e-graph of one region: terms are added in program order, each with all that the rules say of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use egg::{EGraph, Id};
use tpc_ir::{Dim, Interval, Op, RANK, TensorType};

use super::pick::{Picks, Related, Unrelated, compose, from_axes, left_of};
use super::rules::zeros::is_empty;
use super::rules::{RULES, Rule};
use super::term::{Facts, Head, Tables, Term, View, Window};

/// Rounds in which a class may still change. Rules make terms smaller or nearer to the model, so a few do.
const MAX_ROUNDS: usize = 24;
/// Terms beyond which a region is given up.
const MAX_TERMS: usize = 400_000;
/// Arguments beyond which a region is given up: sums of that many terms are none that devices make.
const MAX_ARGS: usize = 1 << 10;
/// Terms made for one another beyond which a region is given up.
const MAX_DEPTH: usize = 96;

/// What is viewed, and how.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub(super) base: Id,
    pub(super) picks: Picks,
}

impl Form {
    /// A value as it is.
    pub(super) fn whole(base: Id) -> Form {
        Form {
            base,
            picks: Picks::new(),
        }
    }
}

/// A part of a value, repeated or not.
#[derive(Clone, Debug)]
pub(super) struct Repeated {
    pub(super) form: Form,
    /// Per axis of the part that is repeated, how often, and the elements that are repeated together.
    pub(super) copies: Vec<(usize, u64, Dim)>,
}

/// A repetition that the model has.
#[derive(Clone, Debug)]
pub(super) struct ModelRepeat {
    /// The repetition, under the sizes that the model gives it.
    pub(super) seen: Id,
    /// The axes that are repeated, and how often.
    pub(super) axes: Vec<(usize, u64)>,
}

/// Terms and what is equal among them.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) graph: EGraph<Term, Facts>,
    done: HashSet<Term>,
    /// Classes to look at again.
    again: BTreeSet<Id>,
    /// How many terms are being made for one another.
    depth: usize,
    /// Terms beyond which no more follows.
    pub(super) max_terms: usize,
    /// Views that the model itself has, as (viewed, view): a device's part of a value may be a part of its slice.
    slices: Vec<(Id, Id)>,
    /// Sums that the model has, as (sum, terms).
    sums: Vec<(Id, Vec<Id>)>,
    /// Repetitions that the model has, as (repeated, repetition).
    repeats: Vec<(Id, Id)>,
    /// Values of which the model sets a slice, as (value, result).
    sets: Vec<(Id, Id)>,
    /// Whether the model's own terms are being added.
    pub(super) of_model: bool,
    /// The rule that is left out.
    without: Option<String>,
    /// How often each rule found something.
    pub(super) found: BTreeMap<&'static str, u64>,
    /// A limit was met.
    pub(super) cut_short: bool,
}

impl Terms {
    pub(super) fn new(tables: Tables, without: Option<&str>) -> Terms {
        let facts = Facts {
            tables,
            contradiction: false,
        };
        Terms {
            graph: EGraph::new(facts),
            done: HashSet::new(),
            again: BTreeSet::new(),
            depth: 0,
            max_terms: MAX_TERMS,
            slices: Vec::new(),
            sums: Vec::new(),
            repeats: Vec::new(),
            sets: Vec::new(),
            of_model: true,
            without: without.map(str::to_owned),
            found: BTreeMap::new(),
            cut_short: false,
        }
    }

    /// The class of a term, with all that follows for it.
    pub(super) fn add(&mut self, head: Head, args: Vec<Id>) -> Id {
        let mut term = Term { head, args };
        self.settle(&mut term);
        if let Some(id) = self.graph.lookup(term.clone()) {
            return id;
        }
        let size = self.graph.total_size();
        if size >= self.max_terms || term.args.len() > MAX_ARGS || self.depth > MAX_DEPTH {
            self.cut_short = true;
        }
        let sum = (self.of_model && head == Head::Plus).then(|| term.args.clone());
        let id = self.graph.add(term);
        if let Some(ty) = self.ty(id).filter(|t| is_empty(t)).cloned() {
            // There is but one value without elements, and nothing to be found out about it.
            let ty = self.graph.analysis.tables.types.number(&ty);
            let nothing = self.graph.add(Term {
                head: Head::Zero(ty),
                args: Vec::new(),
            });
            self.unite(id, nothing);
            return self.graph.find(id);
        }
        if let Some(args) = sum {
            self.sums.push((id, args));
        }
        self.depth += 1;
        self.saturate(id);
        while self.depth == 1
            && let Some(parent) = self.again.pop_first()
        {
            self.saturate(self.graph.find(parent));
        }
        self.depth -= 1;
        self.graph.find(id)
    }

    /// The class of a term that is there.
    pub(super) fn lookup(&self, head: Head, args: Vec<Id>) -> Option<Id> {
        let mut term = Term { head, args };
        self.settle(&mut term);
        self.graph.lookup(term)
    }

    /// Sums have their arguments in order of age.
    fn settle(&self, term: &mut Term) {
        for a in &mut term.args {
            *a = self.graph.find(*a);
        }
        if term.head == Head::Plus {
            term.args.sort_by_key(|&a| (self.graph[a].data.age, a));
        }
    }

    /// Applies the rules to all terms of a class until nothing follows.
    fn saturate(&mut self, id: Id) {
        for _ in 0..MAX_ROUNDS {
            let mut changed = false;
            let nodes = self.nodes(id);
            for term in nodes.iter() {
                if self.cut_short || !self.done.insert(term.clone()) {
                    continue;
                }
                for rule in RULES {
                    changed |= self.apply(rule, term, id);
                }
            }
            if !changed {
                return;
            }
        }
        self.cut_short = true;
    }

    fn apply(&mut self, rule: &Rule, term: &Term, id: Id) -> bool {
        if self.without.as_deref() == Some(rule.name) {
            return false;
        }
        let mut changed = false;
        for other in (rule.apply)(self, term, id) {
            if self.graph.find(other) != self.graph.find(id) {
                *self.found.entry(rule.name).or_default() += 1;
                self.unite(id, other);
                changed = true;
            }
        }
        changed
    }

    /// Makes two classes one. What was made of them before may be equal to more now.
    fn unite(&mut self, a: Id, b: Id) {
        let parents = |id: Id| {
            self.graph[self.graph.find(id)]
                .parents()
                .collect::<Vec<Id>>()
        };
        let (of_a, of_b) = (parents(a), parents(b));
        self.graph.union(a, b);
        // Where one of the two has no parents nothing follows by congruence, and rebuilding would look at all classes.
        if !of_a.is_empty() && !of_b.is_empty() {
            self.again.extend(of_a);
            self.again.extend(of_b);
            self.graph.rebuild();
        }
    }

    /// The terms of a class, in a fixed order.
    pub(super) fn nodes(&self, id: Id) -> Rc<[Term]> {
        let id = self.graph.find(id);
        let mut nodes: Vec<Term> = self.graph[id].nodes.clone();
        for term in &mut nodes {
            self.settle(term);
        }
        nodes.sort();
        nodes.dedup();
        nodes.into()
    }

    pub(super) fn ty(&self, id: Id) -> Option<&TensorType> {
        self.graph[self.graph.find(id)].data.ty.as_ref()
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.graph.analysis.tables
    }

    pub(super) fn op(&self, number: u32) -> &Op {
        self.tables().ops.get(number)
    }

    /// The op whose result a term is, and which.
    pub(super) fn op_of(&self, term: &Term) -> Option<(Op, u8)> {
        match term.head {
            Head::Op { op, result } => Some((self.op(op).clone(), result)),
            _ => None,
        }
    }

    /// The view that a term is.
    pub(super) fn view_of(&self, term: &Term) -> Option<View> {
        match term.head {
            Head::View(view) => Some(self.tables().views.get(view).clone()),
            _ => None,
        }
    }

    /// The ops of a class whose results they are, with their arguments.
    pub(super) fn ops_of(&self, id: Id) -> Vec<(Op, u8, Vec<Id>)> {
        let nodes = self.nodes(id);
        let ops = nodes.iter().filter_map(|t| match t.head {
            Head::Op { op, result } => Some((self.op(op).clone(), result, t.args.clone())),
            _ => None,
        });
        ops.collect()
    }

    /// The values that a class is known to be zero outside a window of.
    pub(super) fn only_of(&self, id: Id) -> Vec<(Window, Id, Id)> {
        let nodes = self.nodes(id);
        let found = nodes.iter().filter_map(|t| match t.head {
            Head::Only(w) => Some((w, t.args[0], t.args[1])),
            _ => None,
        });
        found.collect()
    }

    pub(super) fn is_zero(&self, id: Id) -> bool {
        self.nodes(id)
            .iter()
            .any(|t| matches!(t.head, Head::Zero(_)))
    }

    /// A result of an op.
    pub(super) fn add_op(&mut self, op: &Op, result: u8, args: Vec<Id>) -> Id {
        let of = args.first().copied();
        let number = self.graph.analysis.tables.ops.number(op);
        let id = self.add(Head::Op { op: number, result }, args);
        let list = match op {
            Op::Repeat(_) => Some(&mut self.repeats),
            Op::SetSlice(_) => Some(&mut self.sets),
            _ => None,
        };
        if let (true, Some(list), Some(of)) = (self.of_model, list, of)
            && !list.contains(&(of, id))
        {
            list.push((of, id));
        }
        id
    }

    /// The ops that set slices.
    pub(super) fn set_slices(&self) -> Vec<Op> {
        let ops = self.tables().ops.items().iter();
        ops.filter(|op| matches!(op, Op::SetSlice(_)))
            .cloned()
            .collect()
    }

    /// What the model makes of a value by setting a slice of it: that, the axis and where.
    pub(super) fn model_sets(&self, of: Id) -> Vec<(Id, usize, Interval)> {
        let of = self.graph.find(of);
        let sets = self.sets.iter().filter(|(x, _)| self.graph.find(*x) == of);
        let mut out = Vec::new();
        for &(_, set) in sets {
            for (op, _, args) in self.ops_of(set) {
                let (Op::SetSlice(op), &[x, y]) = (&op, args.as_slice()) else {
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

    /// The terms of the sum that a class is. What is a value of the model is the sum that the model says, if any: how
    /// devices come by it says nothing of what it is.
    pub(super) fn summands(&self, id: Id) -> Option<Vec<Id>> {
        let id = self.graph.find(id);
        if self.of_model || self.graph[id].data.model.is_some() {
            let own = self
                .sums
                .iter()
                .filter(|(sum, _)| self.graph.find(*sum) == id);
            return own
                .map(|(_, args)| args)
                .max_by_key(|args| args.len())
                .cloned();
        }
        let nodes = self.nodes(id);
        // x + 0 = x is a sum as well, but not one that says what x is.
        let says = |t: &&Term| t.args.iter().all(|&a| self.graph.find(a) != id);
        let mut sums = nodes.iter().filter(|t| t.head == Head::Plus);
        sums.find(says).map(|t| t.args.clone())
    }

    /// What a class repeats, and the model's repetitions of that, reshaped or not.
    pub(super) fn model_repeats(&self, id: Id) -> Vec<(Repeated, ModelRepeat)> {
        if self.repeats.is_empty() {
            return Vec::new();
        }
        let own = self.graph.find(id);
        let mut out = Vec::new();
        for local in self.repeated(id) {
            for &(of, all) in &self.repeats {
                if self.graph.find(of) != local.form.base {
                    continue;
                }
                let Some(axes) = self.copies(of, all) else {
                    continue;
                };
                let reshaped = self.model_slices(all).into_iter();
                let reshaped = reshaped.filter(|(_, p, _)| p.is_empty()).map(|(id, ..)| id);
                for seen in std::iter::once(self.graph.find(all)).chain(reshaped) {
                    if seen != own {
                        let axes = axes.clone();
                        out.push((local.clone(), ModelRepeat { seen, axes }));
                    }
                }
            }
        }
        out
    }

    /// What a class is, or repeats, a part of.
    fn repeated(&self, id: Id) -> Vec<Repeated> {
        let forms = self.forms(id);
        let reshaped = forms.iter().filter(|f| f.picks.is_empty());
        let mut out = Vec::new();
        for all in reshaped.map(|f| f.base) {
            for (op, _, args) in self.ops_of(all) {
                let (Op::Repeat(_), &[of]) = (&op, args.as_slice()) else {
                    continue;
                };
                let Some((axes, ty)) = self.copies(of, all).zip(self.ty(of)) else {
                    continue;
                };
                let unit = |a: usize| Dim::product(&ty.dims[..=a]);
                let copies: Option<Vec<_>> =
                    axes.iter().map(|&(a, n)| Some((a, n, unit(a)?))).collect();
                if let Some(copies) = copies {
                    out.extend(self.forms(of).into_iter().map(|form| Repeated {
                        form,
                        copies: copies.clone(),
                    }));
                }
            }
        }
        out.extend(forms.into_iter().map(|form| Repeated {
            form,
            copies: Vec::new(),
        }));
        out
    }

    /// The axes along which one value is repeated to give the other, and how often.
    fn copies(&self, of: Id, all: Id) -> Option<Vec<(usize, u64)>> {
        let (of, all) = (self.ty(of)?, self.ty(all)?);
        let axes = (0..RANK).filter(|&a| of.dims[a] != all.dims[a]);
        let times = |a: usize| all.dims[a].checked_div(&of.dims[a])?.as_const();
        axes.map(|a| Some((a, times(a)?))).collect()
    }

    /// The same where it is there.
    pub(super) fn lookup_op(&mut self, op: &Op, result: u8, args: Vec<Id>) -> Option<Id> {
        let op = self.graph.analysis.tables.ops.number(op);
        self.lookup(Head::Op { op, result }, args)
    }

    pub(super) fn zero(&mut self, ty: &TensorType) -> Id {
        let ty = self.graph.analysis.tables.types.number(ty);
        self.add(Head::Zero(ty), Vec::new())
    }

    /// What `picks` leave of a value, under other sizes.
    pub(super) fn view(&mut self, base: Id, picks: Picks, dims: [Dim; RANK]) -> Id {
        let full = picks.is_empty() && self.ty(base).is_some_and(|t| t.dims == dims);
        if full {
            return self.graph.find(base);
        }
        let view = self
            .graph
            .analysis
            .tables
            .views
            .number(&View { picks, dims });
        let id = self.add(Head::View(view), vec![base]);
        if self.of_model {
            let base = self.graph.find(base);
            if !self.slices.contains(&(base, id)) {
                self.slices.push((base, id));
            }
        }
        id
    }

    /// Indices along one axis of a value.
    pub(super) fn on_axis(
        &mut self,
        base: Id,
        axis: usize,
        pick: Option<super::pick::Pick>,
    ) -> Related<Id> {
        let dims = &self.ty(base).ok_or(Unrelated)?.dims;
        let mut axes = [None, None, None, None];
        axes[axis] = pick;
        let picks = from_axes(&axes, dims)?;
        let dims = left_of(&axes, dims)?;
        Ok(self.view(base, picks, dims))
    }

    /// The views that a class is.
    pub(super) fn views_of(&self, id: Id) -> Vec<(Rc<View>, Id)> {
        let nodes = self.nodes(id);
        let views = nodes.iter().filter_map(|t| match t.head {
            Head::View(v) => Some((Rc::new(self.tables().views.get(v).clone()), t.args[0])),
            _ => None,
        });
        views.collect()
    }

    /// What a class is a part of, itself included; what is nearest to the model first.
    pub(super) fn forms(&self, id: Id) -> Vec<Form> {
        let id = self.graph.find(id);
        let mut out: Vec<Form> = self
            .views_of(id)
            .into_iter()
            .map(|(v, base)| Form {
                base: self.graph.find(base),
                picks: v.picks.clone(),
            })
            .filter(|f| f.base != id)
            .collect();
        out.push(Form::whole(id));
        out.sort_by_key(|f| {
            let data = &self.graph[f.base].data;
            (data.model.is_none(), f.picks.len(), Reverse(data.age))
        });
        out
    }

    /// The values of which `base` is known to have a view in the model, with their picks.
    pub(super) fn model_slices(&self, base: Id) -> Vec<(Id, Picks, [Dim; RANK])> {
        let base = self.graph.find(base);
        let mut out = Vec::new();
        for &(of, slice) in &self.slices {
            if self.graph.find(of) == base {
                let slice = self.graph.find(slice);
                for (v, b) in self.views_of(slice) {
                    if self.graph.find(b) == base {
                        out.push((slice, v.picks.clone(), v.dims.clone()));
                    }
                }
            }
        }
        out
    }

    /// The view of a view, as one.
    pub(super) fn composed(&mut self, inner: &View, base: Id, outer: &View) -> Related<Id> {
        let picks = compose(&inner.picks, &outer.picks)?;
        Ok(self.view(base, picks, outer.dims.clone()))
    }
}
