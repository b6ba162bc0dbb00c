//! Ops on parts of their operands.

use egg::Id;
use tpc_ir::op::{Norm, NormKind};
use tpc_ir::{Dim, Interval, Op};

use super::Rule;
use crate::prove::pick::{Pick, Related, Unrelated, from_axes, left_of, locate, on_axes};
use crate::prove::relate::{Copies, Part, Relation, relate};
use crate::prove::term::Head;
use crate::prove::terms::{Form, ModelRepeat, Repeated, Terms};

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

/// A repetition of a part of what the model repeats, as a part of that.
fn repetition(terms: &Terms, id: Id, local: &Repeated, of: &ModelRepeat) -> Related<Seen> {
    let ty = |id| terms.ty(id).ok_or(Unrelated);
    let (own, whole, base) = (ty(id)?, ty(of.seen)?, ty(local.form.base)?);
    if local
        .copies
        .iter()
        .any(|c| of.axes.iter().all(|a| a.0 != c.0))
    {
        return Err(Unrelated);
    }
    let mut once = whole.dims.clone();
    let mut copied = Vec::new();
    let mut below = 1;
    for &(axis, times) in &of.axes {
        let inner = Dim::product(&base.dims[..=axis]).ok_or(Unrelated)?;
        let here = local.copies.iter().find(|c| c.0 == axis);
        if let Some((_, _, unit)) = here {
            // The copies are put in after the same elements.
            let rest = Dim::product(&base.dims[axis + 1..]).ok_or(Unrelated)?;
            let dims = [inner.clone(), rest, Dim::ONE, Dim::ONE];
            if left_of(&on_axes(&local.form.picks, &dims)?, &dims)?[0] != *unit {
                return Err(Unrelated);
            }
        }
        let factor = Pick {
            unit: inner.checked_mul(&below.into()).ok_or(Unrelated)?,
            size: times,
            runs: vec![Interval { start: 0, len: 1 }],
        };
        let (a, Pick { unit, .. }) = locate(&factor, &whole.dims)?;
        once[a] = once[a].checked_div(&times.into()).ok_or(Unrelated)?;
        copied.push((a, unit, times, here.map_or(1, |c| c.1)));
        below *= times;
    }
    let mut axes = on_axes(&local.form.picks, &once)?;
    let mut left = left_of(&axes, &once)?;
    let mut copies = [None, None, None, None];
    for (a, unit, times, held) in copied {
        left[a] = left[a].checked_mul(&held.into()).ok_or(Unrelated)?;
        let own = Copies {
            unit,
            times,
            pick: axes[a].take(),
            held,
        };
        if copies[a].replace(own).is_some() {
            return Err(Unrelated);
        }
    }
    if left != own.dims {
        return Err(Unrelated);
    }
    Ok(Seen {
        base: of.seen,
        part: Part {
            ty: whole.clone(),
            picks: from_axes(&axes, &whole.dims)?,
            copies,
            dims: own.dims.clone(),
        },
    })
}

/// Every way to see the arguments as parts of wholes, nearest to the model first.
pub(crate) fn ways(terms: &Terms, args: &[Id]) -> Vec<Vec<Seen>> {
    let mut all: Vec<Vec<Seen>> = args.iter().map(|&a| sights(terms, a)).collect();
    if all.iter().map(Vec::len).product::<usize>() > MAX_WAYS {
        // What the model has is enough to say where there is much to say.
        let of_model = |s: &Seen| terms.graph[terms.graph.find(s.base)].data.model.is_some();
        for sights in all.iter_mut().filter(|s| s.iter().any(of_model)) {
            sights.retain(of_model);
        }
    }
    let mut out: Vec<Vec<Seen>> = vec![Vec::new()];
    for sights in all {
        let longer = out.iter().flat_map(|way| {
            let with = |seen: &Seen| {
                let mut way = way.clone();
                way.push(seen.clone());
                way
            };
            sights.iter().map(with)
        });
        out = longer.take(MAX_WAYS).collect();
    }
    out
}

/// Every way to see an argument as a part of a whole.
fn sights(terms: &Terms, id: Id) -> Vec<Seen> {
    let forms = terms.forms(id);
    let mut all: Vec<Seen> = forms.iter().filter_map(|f| seen(terms, id, f)).collect();
    for (local, of) in terms.model_repeats(id) {
        all.extend(repetition(terms, id, &local, &of).ok());
    }
    all
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
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        // What the model itself has needs no other name, and views have theirs.
        let is_model = terms.of_model || terms.graph[terms.graph.find(id)].data.model.is_some();
        if is_model || term.args.is_empty() || matches!(op, Op::Reshape(_)) {
            return Vec::new();
        }
        let mut made = Vec::new();
        let mut open = None;
        for way in ways(terms, &term.args) {
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
            if relation.summed.is_some() || is_whole(&way) && relation.op == op {
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
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::NormApply(apply), [x, stats]) = (op, term.args.as_slice()) else {
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
