//! Ops on parts of their operands.

use egg::Id;
use tpc_ir::op::{Norm, NormKind};
use tpc_ir::{Dim, Op, RANK};

use super::Rule;
use crate::prove::pick::{left_of, on_axes};
use crate::prove::relate::{Part, Relation, relate};
use crate::prove::term::Head;
use crate::prove::terms::{Form, Terms};

/// Ways to see the arguments that are tried for one term.
const MAX_WAYS: usize = 64;

/// An argument as a part of a value.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) base: Id,
    pub(crate) part: Part,
}

impl Seen {
    /// An argument as it is.
    pub(super) fn whole(terms: &Terms, id: Id) -> Option<Seen> {
        seen(terms, id, &Form::whole(id))
    }
}

/// A class as a part of what it is a view of, if the sizes say that an axis of the one is part of the same axis of the
/// other.
fn seen(terms: &Terms, id: Id, form: &Form) -> Option<Seen> {
    let (own, of) = (terms.ty(id)?, terms.ty(form.base)?);
    let axes = on_axes(&form.picks, &of.dims).ok()?;
    if left_of(&axes, &of.dims).ok()? != own.dims {
        return None;
    }
    Some(Seen {
        base: form.base,
        part: Part {
            ty: of.clone(),
            picks: form.picks.clone(),
            copies: [None, None, None, None],
            dims: own.dims.clone(),
        },
    })
}

/// A repetition as a part of a longer one.
fn repetition(terms: &Terms, id: Id, longer: Id, of: &[Dim; RANK]) -> Option<Seen> {
    let (own, whole) = (terms.ty(id)?, terms.ty(longer)?);
    let copies = std::array::from_fn(|a| (own.dims[a] != whole.dims[a]).then(|| of[a].clone()));
    Some(Seen {
        base: longer,
        part: Part {
            ty: whole.clone(),
            picks: Vec::new(),
            copies,
            dims: own.dims.clone(),
        },
    })
}

/// Every way to see the arguments as parts of wholes, nearest to the model first.
pub(crate) fn ways(terms: &Terms, args: &[Id]) -> Vec<Vec<Seen>> {
    let mut out: Vec<Vec<Seen>> = vec![Vec::new()];
    for &a in args {
        let forms = terms.forms(a);
        let mut all: Vec<Seen> = forms.iter().filter_map(|f| seen(terms, a, f)).collect();
        for (longer, of) in terms.model_repeats(a) {
            all.extend(repetition(terms, a, longer, &of));
        }
        let mut next = Vec::new();
        for way in &out {
            for seen in &all {
                if next.len() < MAX_WAYS {
                    let mut way = way.clone();
                    way.push(seen.clone());
                    next.push(way);
                }
            }
        }
        out = next;
    }
    out
}

/// Whether all arguments are wholes.
pub(crate) fn is_whole(way: &[Seen]) -> bool {
    way.iter().all(|s| s.part.is_whole())
}

/// What an op makes of parts, and of which wholes.
pub(crate) fn related(op: &Op, way: &[Seen]) -> Option<Relation> {
    related_as(op, way, None)
}

/// The same, where an op of the model says what the part does not.
fn related_as(op: &Op, way: &[Seen], model: Option<&Op>) -> Option<Relation> {
    let parts: Vec<Part> = way.iter().map(|s| s.part.clone()).collect();
    relate(op, &parts, model).ok()
}

pub(super) const PARTS: Rule = Rule {
    name: "op-of-parts",
    equation: "f(x[p], y[q], …) = f(x, y, …)[r], where f's rule says so; zero outside f's window",
    apply: |terms, term, id| {
        let Head::Op { op, result } = term.head else {
            return Vec::new();
        };
        // What the model itself has needs no other name, and views have theirs.
        let is_model = terms.graph[terms.graph.find(id)].data.model.is_some();
        let op = terms.op(op).clone();
        if is_model || term.args.is_empty() || matches!(op, Op::Reshape(_)) {
            return Vec::new();
        }
        let mut made = Vec::new();
        let mut open = None;
        for way in ways(terms, &term.args) {
            if is_whole(&way) {
                continue;
            }
            let found = match &op {
                Op::SetSlice(_) => terms.set_slices().iter().find_map(|m| {
                    let whole = related_as(&op, &way, Some(m))?;
                    let bases = way.iter().map(|s| s.base).collect();
                    terms.lookup_op(&whole.op, result, bases)?;
                    Some(whole)
                }),
                _ => related(&op, &way),
            };
            let Some(relation) = found else {
                continue;
            };
            if relation.summed.is_some() {
                continue;
            }
            let bases: Vec<Id> = way.iter().map(|f| f.base).collect();
            match terms.lookup_op(&relation.op, result, bases.clone()) {
                Some(whole) => made.extend(part(terms, id, whole, &relation, result, &bases)),
                None if open.is_none() => open = Some((relation, bases)),
                None => {}
            }
        }
        if made.is_empty()
            && let Some((relation, bases)) = open
        {
            let whole = terms.add_op(&relation.op, result, bases.clone());
            made.extend(part(terms, id, whole, &relation, result, &bases));
        }
        made
    },
};

/// The part of the whole that the relation promises, if it has the sizes that the device's op gives.
fn part(
    terms: &mut Terms,
    id: Id,
    whole: Id,
    relation: &Relation,
    result: u8,
    bases: &[Id],
) -> Option<Id> {
    let picks = relation.results.get(usize::from(result))?.clone();
    let dims = terms.ty(id)?.dims.clone();
    let of = &terms.ty(whole)?.dims;
    if left_of(&on_axes(&picks, of).ok()?, of).ok()? != dims {
        return None;
    }
    match relation.window {
        None => Some(terms.view(whole, picks, dims)),
        Some(window) => {
            let (value, ids) = match &relation.op {
                Op::GetRows(_) => (whole, *bases.get(1)?),
                Op::MulMatId(_) => (whole, *bases.get(2)?),
                // Outside the window nothing is added: to nothing that makes nothing.
                Op::AddId(_) if terms.is_zero(*bases.first()?) => (whole, *bases.get(2)?),
                _ => return None,
            };
            let only = terms.add(Head::Only(window), vec![value, ids]);
            Some(terms.view(only, picks, dims))
        }
    }
}

pub(super) const NORM_IN_TWO_STEPS: Rule = Rule {
    name: "norm-in-two-steps",
    equation: "norm_apply(x, norm_stats(x)) = norm(x)",
    apply: |terms, term, _| {
        let Head::Op { op, .. } = term.head else {
            return Vec::new();
        };
        let (Op::NormApply(apply), [x, stats]) = (terms.op(op).clone(), term.args.as_slice())
        else {
            return Vec::new();
        };
        let of_whole = terms.ty(*x).is_some_and(|t| t.dims[0] == apply.n);
        let x_id = terms.graph.find(*x);
        let own = terms.ops_of(*stats).into_iter().any(|(op, _, args)| {
            matches!(op, Op::NormStats(s) if s.kind == apply.kind)
                && args.iter().all(|&a| terms.graph.find(a) == x_id)
        });
        if !of_whole || !own {
            return Vec::new();
        }
        let kind: NormKind = apply.kind;
        let norm = Norm {
            kind,
            eps: apply.eps,
        };
        vec![terms.add_op(&norm.into(), 0, vec![*x])]
    },
};
