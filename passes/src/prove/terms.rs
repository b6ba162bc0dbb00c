//! The e-graph of one region: terms are added in program order, each with all that the rules say of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use egg::{EGraph, Id};
use tpc_ir::{Dim, Op, RANK, TensorType};

use super::pick::{Picks, Related, Unrelated, compose, from_axes, left_of};
use super::rules::zeros::is_empty;
use super::rules::{RULES, Rule};
use super::term::{Facts, Head, Tables, Term, View, Window};

/// Rounds in which a class may still change. Rules make terms smaller or nearer to the model, so a few do.
const MAX_ROUNDS: usize = 24;
/// Terms beyond which a region is given up.
const MAX_TERMS: usize = 400_000;

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

/// Terms and what is equal among them.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) graph: EGraph<Term, Facts>,
    done: HashSet<Term>,
    /// Views that the model itself has, as (viewed, view): a device's part of a value may be a part of its slice.
    slices: Vec<(Id, Id)>,
    /// Sums that the model has, as (sum, terms).
    sums: Vec<(Id, Vec<Id>)>,
    /// Repetitions that the model has, as (repeated, repetition).
    repeats: Vec<(Id, Id)>,
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
            slices: Vec::new(),
            sums: Vec::new(),
            repeats: Vec::new(),
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
        if self.graph.total_number_of_nodes() >= MAX_TERMS {
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
            self.graph.union(id, nothing);
            self.graph.rebuild();
            return self.graph.find(id);
        }
        if let Some(args) = sum {
            self.sums.push((id, args));
        }
        self.saturate(id);
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
                self.graph.union(id, other);
                self.graph.rebuild();
                changed = true;
            }
        }
        changed
    }

    /// The terms of a class, in a fixed order.
    pub(super) fn nodes(&self, id: Id) -> Rc<[Term]> {
        let id = self.graph.find(id);
        let mut nodes: Vec<Term> = self.graph[id].nodes.clone();
        nodes.sort();
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
        let repeated = match (op, args.as_slice()) {
            (Op::Repeat(_), &[of]) if self.of_model => Some(of),
            _ => None,
        };
        let op = self.graph.analysis.tables.ops.number(op);
        let id = self.add(Head::Op { op, result }, args);
        if let Some(of) = repeated
            && !self.repeats.contains(&(of, id))
        {
            self.repeats.push((of, id));
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

    /// The model's repetitions of what a class repeats, with the sizes of that.
    pub(super) fn model_repeats(&self, id: Id) -> Vec<(Id, [Dim; RANK])> {
        let mut out = Vec::new();
        for (op, _, args) in self.ops_of(id) {
            let (Op::Repeat(_), &[of]) = (&op, args.as_slice()) else {
                continue;
            };
            let of = self.graph.find(of);
            let Some(dims) = self.ty(of).map(|t| t.dims.clone()) else {
                continue;
            };
            let own = self.graph.find(id);
            let same = self.repeats.iter().filter(|r| self.graph.find(r.0) == of);
            for &(_, repetition) in same {
                let repetition = self.graph.find(repetition);
                if repetition != own {
                    out.push((repetition, dims.clone()));
                }
            }
        }
        out
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
