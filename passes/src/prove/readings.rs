use std::rc::Rc;

use egg::Id;
use tpc_ir::{Dim, Interval, Op};

use super::index_set::{NotExpressible, Pattern, from_axes, locate, per_axis, selected_dims};
use super::relate::{Copies, Part, Relation, relate};
use super::term_graph::{ModelRepetition, Repetition, Selection, TermGraph};

pub(super) type Reading = Vec<ArgPart>;

const MAX_READINGS: usize = 64;
/// The steps charged for relating a part of a repetition to the model's.
const REPETITION: usize = 1;
/// The steps charged for deriving a relation.
const RELATION: usize = 1;

/// An argument, read as a part of `base`.
#[derive(Clone, Debug)]
pub(super) struct ArgPart {
    pub(super) base: Id,
    pub(super) part: Rc<Part>,
}

impl ArgPart {
    pub(super) fn whole(terms: &TermGraph, id: Id) -> Option<ArgPart> {
        read_selection(terms, id, &Selection::whole(id))
    }
}

/// Reads an e-class as a part of its base, if each axis is a part of the same axis of the base.
fn read_selection(terms: &TermGraph, id: Id, selection: &Selection) -> Option<ArgPart> {
    let base = selection.base;
    let part = terms
        .relations
        .part(base, selection.view(), || part(terms, id, selection))?;
    Some(ArgPart { base, part })
}

fn part(terms: &TermGraph, id: Id, selection: &Selection) -> Option<Part> {
    let (own, of) = (terms.ty(id)?, terms.ty(selection.base)?);
    let axes = per_axis(selection.indices(), &of.dims).ok()?;
    if selected_dims(&axes, &of.dims).ok()? != own.dims {
        return None;
    }
    Some(Part {
        ty: of.clone(),
        indices: selection.indices().to_vec(),
        axes,
        copies: [None, None, None, None],
        dims: own.dims.clone(),
    })
}

/// Returns a repetition of a part, as a part of the model's repetition of the whole.
fn repetition(
    terms: &TermGraph,
    id: Id,
    local: &Repetition,
    of: &ModelRepetition,
) -> Result<ArgPart, NotExpressible> {
    let ty = |id| terms.ty(id).ok_or(NotExpressible);
    let (own, whole, base) = (ty(id)?, ty(of.result)?, ty(local.selection.base)?);
    if local
        .copies
        .iter()
        .any(|c| of.axes.iter().all(|a| a.0 != c.0))
    {
        return Err(NotExpressible);
    }
    let mut once = whole.dims.clone();
    let mut copied = Vec::new();
    let mut below = 1;
    for &(axis, times) in &of.axes {
        let inner = Dim::product(&base.dims[..=axis]).ok_or(NotExpressible)?;
        let here = local.copies.iter().find(|c| c.0 == axis);
        if let Some((_, _, unit)) = here {
            let rest = Dim::product(&base.dims[axis + 1..]).ok_or(NotExpressible)?;
            let dims = [inner.clone(), rest, Dim::ONE, Dim::ONE];
            if selected_dims(&per_axis(local.selection.indices(), &dims)?, &dims)?[0] != *unit {
                return Err(NotExpressible);
            }
        }
        let factor = Pattern {
            unit: inner.checked_mul(&below.into()).ok_or(NotExpressible)?,
            size: times,
            intervals: [Interval { start: 0, len: 1 }].into(),
        };
        let (a, Pattern { unit, .. }) = locate(&factor, &whole.dims)?;
        once[a] = once[a].checked_div(&times.into()).ok_or(NotExpressible)?;
        copied.push((a, unit, times, here.map_or(1, |c| c.1)));
        below *= times;
    }
    let mut axes = per_axis(local.selection.indices(), &once)?;
    let mut left = selected_dims(&axes, &once)?;
    let mut copies = [None, None, None, None];
    for (a, unit, times, held) in copied {
        left[a] = left[a].checked_mul(&held.into()).ok_or(NotExpressible)?;
        let own = Copies {
            unit,
            times,
            pattern: axes[a].take(),
            held,
        };
        if copies[a].replace(own).is_some() {
            return Err(NotExpressible);
        }
    }
    if left != own.dims {
        return Err(NotExpressible);
    }
    let indices = from_axes(&axes, &whole.dims)?;
    Ok(ArgPart {
        base: of.result,
        part: terms.relations.intern_part(Part {
            ty: whole.clone(),
            axes: per_axis(&indices, &whole.dims)?,
            indices,
            copies,
            dims: own.dims.clone(),
        }),
    })
}

/// Returns all readings, nearest to the model first.
pub(super) fn readings(terms: &TermGraph, args: &[Id]) -> Vec<Reading> {
    let mut all: Vec<Vec<ArgPart>> = args.iter().map(|&a| parts(terms, a)).collect();
    let count = all
        .iter()
        .fold(1_usize, |n, parts| n.saturating_mul(parts.len()));
    if count > MAX_READINGS {
        // If there are too many readings, keep only parts of the model's values.
        let of_model = |s: &ArgPart| terms.is_model(s.base);
        for parts in all.iter_mut().filter(|s| s.iter().any(of_model)) {
            parts.retain(of_model);
        }
    }
    let mut out: Vec<Reading> = vec![Vec::new()];
    for parts in all {
        let longer = out.iter().flat_map(|reading| {
            let with = |part: &ArgPart| {
                let mut reading = reading.clone();
                reading.push(part.clone());
                reading
            };
            parts.iter().map(with)
        });
        out = longer.take(MAX_READINGS).collect();
    }
    terms.charge(out.len());
    out
}

fn parts(terms: &TermGraph, id: Id) -> Vec<ArgPart> {
    if terms.is_zero(id) {
        // Zeros are parts of any zeros, so other readings add nothing.
        return ArgPart::whole(terms, id).into_iter().collect();
    }
    let selections = terms.selections(id);
    let mut all: Vec<ArgPart> = selections
        .iter()
        .filter_map(|s| read_selection(terms, id, s))
        .collect();
    for (local, of) in terms.model_repetitions(id) {
        terms.charge(REPETITION);
        all.extend(repetition(terms, id, &local, &of).ok());
    }
    all
}

pub(super) fn is_whole(reading: &[ArgPart]) -> bool {
    reading.iter().all(|s| s.part.is_whole())
}

pub(super) fn find_relation(
    terms: &TermGraph,
    op: &Op,
    reading: &[ArgPart],
) -> Option<Rc<Relation>> {
    let parts = || reading.iter().map(|s| Rc::clone(&s.part));
    match terms.tables().ops.number(op) {
        Some(number) => terms
            .relations
            .relation(number, parts(), || charged_relation(terms, op, reading)),
        None => charged_relation(terms, op, reading).map(Rc::new),
    }
}

fn charged_relation(terms: &TermGraph, op: &Op, reading: &[ArgPart]) -> Option<Relation> {
    terms.charge(RELATION);
    derive_relation(op, reading, None)
}

/// Computes the relation. `model` is the model's op, needed if the parts do not determine the parameters.
pub(super) fn derive_relation(
    op: &Op,
    reading: &[ArgPart],
    model: Option<&Op>,
) -> Option<Relation> {
    let parts: Vec<Rc<Part>> = reading.iter().map(|s| Rc::clone(&s.part)).collect();
    relate(op, &parts, model).ok()
}
