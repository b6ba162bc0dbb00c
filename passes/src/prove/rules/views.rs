use egg::Id;
use tpc_ir::op::{Slice, axis_index};
use tpc_ir::{Dim, Interval, Op, RANK};

use crate::prove::index_set::{
    IndexSet, NotExpressible, Pattern, clip, common_unit, compose, from_axes, per_axis,
};
use crate::prove::term_graph::{ProofRule, Selection, TermGraph};

pub(super) const RESHAPE: ProofRule = ProofRule {
    name: "reshape",
    equation: "reshape(x) = x[all]",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Reshape(op), [x]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        vec![terms.view(*x, IndexSet::new(), op.dims.clone())]
    },
};

pub(super) const SLICE: ProofRule = ProofRule {
    name: "slice",
    equation: "slice(x, start, len) = x[start .. start + len]",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Slice(op), [x]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let Ok(axis) = axis_index(op.axis) else {
            return Vec::new();
        };
        let Some(size) = terms.ty(*x).map(|t| t.dims[axis].clone()) else {
            return Vec::new();
        };
        let sliced = range(&size, &op.start, &op.len).and_then(|p| terms.on_axis(*x, axis, p));
        sliced.into_iter().collect()
    },
};

/// Returns the pattern of `len` indices from `start`, if the sizes have a common unit.
fn range(size: &Dim, start: &Dim, len: &Dim) -> Result<Option<Pattern>, NotExpressible> {
    let mut unit = size.clone();
    for d in [start, len] {
        if !d.is_zero() {
            unit = common_unit(&unit, d)?;
        }
    }
    let units = |d: &Dim| {
        let n = d.checked_div(&unit).and_then(|d| d.as_const());
        n.ok_or(NotExpressible)
    };
    let interval = Interval {
        start: units(start)?,
        len: units(len)?,
    };
    Pattern::new(&unit, units(size)?, [interval])
}

pub(super) const VIEW_OF_VIEW: ProofRule = ProofRule {
    name: "view-of-view",
    equation: "x[p][q] = x[p ∘ q]",
    apply: |terms, term, _| match terms.numbered_view_of(term) {
        Some(outer) => terms.add_compositions(&outer, term.args[0]),
        None => Vec::new(),
    },
};

pub(super) const VIEW_THROUGH_SLICE: ProofRule = ProofRule {
    name: "view-through-slice",
    equation: "x[p ∘ q] = y[q], if the model has y = x[p]",
    apply: |terms, term, id| {
        let id = terms.graph.find(id);
        match terms.numbered_view_of(term) {
            Some(view) => terms.add_quotients(&view, term.args[0], id),
            None => Vec::new(),
        }
    },
};

pub(super) const SEGMENTS: ProofRule = ProofRule {
    name: "segments",
    equation: "y = concat(x, y, …)[part in y], if the model has the concatenation",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Op::Concat(concat) = &*op else {
            return Vec::new();
        };
        let Some(axis) = axis_index(concat.axis).ok().filter(|_| terms.of_model) else {
            return Vec::new();
        };
        for (k, &arg) in term.args.iter().enumerate() {
            let dims = terms.ty(arg).map(|t| t.dims.clone());
            if let (Ok(indices), Some(dims)) = (segment(terms, &term.args, axis, k), dims) {
                // The rule on views of concatenations relates this view to the operand.
                terms.view(id, indices, dims);
            }
        }
        Vec::new()
    },
};

pub(super) const VIEW_OF_CONCAT: ProofRule = ProofRule {
    name: "view-of-concat",
    equation: "concat(x, y, …)[part in y] = y[the same]",
    apply: |terms, term, _| {
        let Some(view) = terms.numbered_view_of(term) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (op, _, args) in terms.ops_of(term.args[0]) {
            let Op::Concat(concat) = &*op else { continue };
            let Ok(axis) = axis_index(concat.axis) else {
                continue;
            };
            for k in 0..args.len() {
                if let Ok(indices) = segment(terms, &args, axis, k) {
                    out.extend(terms.add_view_of_segment(&view, indices, args[k]));
                }
            }
        }
        out
    },
};

pub(super) const SLICE_OF_CONCAT: ProofRule = ProofRule {
    name: "slice-of-concat",
    equation: "slice(concat(x, y, …), part in y) = slice(y, the same), along an axis of run-time size",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Slice(slice), [x]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let size = axis_index(slice.axis)
            .ok()
            .and_then(|axis| Some((axis, terms.ty(*x)?.dims[axis].clone())));
        // Index sets handle known sizes.
        let Some((axis, _)) = size.filter(|(_, size)| size.as_const().is_none()) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (op, _, args) in terms.ops_of(*x) {
            if matches!(&*op, Op::Concat(c) if c.axis == slice.axis)
                && let Some((part, start)) = part_with(terms, &args, axis, slice)
            {
                let len = slice.len.clone();
                let of_part = Slice {
                    axis: slice.axis,
                    start,
                    len,
                };
                out.push(terms.add_op(&of_part.into(), 0, vec![part]));
            }
        }
        out
    },
};

/// Returns the concatenated value that contains the whole slice, and the slice's start in that value.
fn part_with(terms: &TermGraph, args: &[Id], axis: usize, slice: &Slice) -> Option<(Id, Dim)> {
    let end = slice.start.checked_add(&slice.len)?;
    let mut first = Dim::constant(0);
    for &arg in args {
        let next = first.checked_add(&terms.ty(arg)?.dims[axis])?;
        if first.at_most(&slice.start) && end.at_most(&next) {
            return Some((arg, slice.start.checked_sub(&first)?));
        }
        first = next;
    }
    None
}

pub(super) const VIEW_BESIDE_SET_SLICE: ProofRule = ProofRule {
    name: "view-beside-set-slice",
    equation: "x[p] = set_slice(x, y)[p], if x[p] and the slice are disjoint in the model",
    apply: |terms, term, _| {
        let Some(view) = terms.view_of(term) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (set, axis, interval) in terms.model_sets(term.args[0]) {
            let untouched = terms.ty(set).is_some_and(|ty| {
                let axes = per_axis(&view.indices, &ty.dims);
                let pattern = axes.ok().and_then(|axes| axes[axis].clone());
                let held = pattern.and_then(|p| p.refine(&Dim::ONE, &ty.dims[axis]).ok());
                held.is_some_and(|h| clip(&h, interval.start, interval.len).is_empty())
            });
            if untouched {
                out.push(terms.view(set, view.indices.clone(), view.dims.clone()));
            }
        }
        out
    },
};

fn segment(
    terms: &TermGraph,
    args: &[Id],
    axis: usize,
    k: usize,
) -> Result<IndexSet, NotExpressible> {
    let mut sizes = Vec::new();
    for &a in args {
        let size = terms.ty(a).and_then(|t| t.dims.get(axis));
        sizes.push(size.ok_or(NotExpressible)?.clone());
    }
    let whole = Dim::sum(&sizes).ok_or(NotExpressible)?;
    let start = Dim::sum(&sizes[..k]).ok_or(NotExpressible)?;
    let mut dims = terms.ty(args[k]).ok_or(NotExpressible)?.dims.clone();
    let len = std::mem::replace(&mut dims[axis], whole.clone());
    let mut axes = [None, None, None, None];
    axes[axis] = range(&whole, &start, &len)?;
    from_axes(&axes, &dims)
}

pub(super) const CONCAT_OF_VIEWS: ProofRule = ProofRule {
    name: "concat-of-views",
    equation: "concat(x[p], x[q], …) = x[p, q, …]",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Op::Concat(op) = &*op else {
            return Vec::new();
        };
        let Some(axis) = axis_index(op.axis).ok().filter(|_| !term.args.is_empty()) else {
            return Vec::new();
        };
        let Some(dims) = terms.ty(id).map(|t| t.dims.clone()) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        let mut selections: Vec<Vec<Selection>> =
            term.args.iter().map(|&a| terms.selections(a)).collect();
        let bases: Vec<Id> = selections[0].iter().map(|s| s.base).collect();
        for base in bases {
            // Views added for an earlier base may give the arguments new selections.
            if !out.is_empty() {
                selections = term.args.iter().map(|&a| terms.selections(a)).collect();
            }
            let parts: Option<Vec<([Dim; RANK], &[Pattern])>> = term
                .args
                .iter()
                .zip(&selections)
                .map(|(&arg, of_arg)| {
                    let form = of_arg.iter().find(|s| s.base == base)?;
                    Some((terms.ty(arg)?.dims.clone(), form.indices()))
                })
                .collect();
            if let Some(indices) = parts.and_then(|p| join_parts(&p, axis).ok()) {
                out.push(terms.view(base, indices, dims.clone()));
            }
        }
        out
    },
};

fn join_parts(
    parts: &[([Dim; RANK], &[Pattern])],
    axis: usize,
) -> Result<IndexSet, NotExpressible> {
    // The position of the only pattern that differs between the parts.
    let (_, first) = parts.first().ok_or(NotExpressible)?;
    let differs = |i: usize| parts.iter().any(|(_, p)| p.get(i) != first.get(i));
    let mut at = (0..first.len()).filter(|&i| differs(i));
    let at = match (at.next(), at.next()) {
        (Some(at), None) => at,
        _ => return Err(NotExpressible),
    };
    if parts.iter().any(|(_, p)| p.len() != first.len()) {
        return Err(NotExpressible);
    }
    let mut unit = first[at].unit.clone();
    let mut size = first[at].period()?;
    for (_, p) in parts {
        unit = common_unit(&unit, &p[at].unit)?;
        if p[at].period()? != size {
            // One pattern repeats within the other's period.
            let (a, b) = (p[at].period()?, &size);
            size = if a.checked_div(b).is_some() {
                a
            } else if b.checked_div(&a).is_some() {
                size
            } else {
                return Err(NotExpressible);
            };
        }
    }
    let mut intervals = Vec::new();
    for (dims, indices) in parts {
        let own = indices[at].refine(&unit, &size)?;
        let len: u64 = own.iter().map(|r| r.len).sum();
        if len > 0 {
            // The factor must be the axis's most major; all more minor factors must be of this axis.
            let mut below = unit.clone();
            let mut all = unit.checked_mul(&len.into()).ok_or(NotExpressible)?;
            for minor in indices[..at].iter().rev() {
                let shrink = |d: &Dim| -> Result<Dim, NotExpressible> {
                    let times = d.checked_div(&minor.period()?).ok_or(NotExpressible)?;
                    minor
                        .scaled(&Dim::ONE)?
                        .count(&minor.period()?)?
                        .checked_mul(&times)
                        .ok_or(NotExpressible)
                };
                below = shrink(&below)?;
                all = shrink(&all)?;
            }
            let lower = Dim::product(&dims[..axis]).ok_or(NotExpressible)?;
            let upper = lower.checked_mul(&dims[axis]).ok_or(NotExpressible)?;
            if below.checked_div(&lower).is_none() || all != upper {
                return Err(NotExpressible);
            }
        }
        intervals.extend(own);
    }
    let units = size
        .checked_div(&unit)
        .and_then(|d| d.as_const())
        .ok_or(NotExpressible)?;
    let mut indices: IndexSet = first[..at].to_vec();
    indices.extend(Pattern::new(&unit, units, intervals)?);
    indices.extend_from_slice(&first[at + 1..]);
    // In lowest terms, the order of the factors is the same.
    compose(&[], &indices)
}
