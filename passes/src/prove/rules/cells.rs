//! Rules on caches divided by cells.

use egg::Id;
use tpc_ir::op::{Concat, FlashAttn, MergeAttn, Permute, SetRows, Slice, axis_index};
use tpc_ir::{CELL_BLOCK, CellParts, Dim, Interval, Op, RANK};

use crate::prove::index_set::{NotExpressible, Pattern, from_axes, per_axis, selected_dims};
use crate::prove::readings::{find_relation, readings};
use crate::prove::term_graph::{ProofRule, TermGraph};

/// Scores and values of a cell do not depend on other cells, so the order of cells does not matter. The weights of
/// `merge_attn` make up for the parts' separate denominators. Sinks count once, in `merge_attn`.
pub(super) const ATTENTION_IN_PARTS: ProofRule = ProofRule {
    name: "attention-in-parts",
    equation: "flash_attn(q, k, v, m) = merge_attn(flash_attn(q, k[p], v[p], m[p]) {lse}, …), if each cell is in one part",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::FlashAttn(op), [q, k, v, mask, sinks @ ..]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        if op.lse || !terms.of_model {
            return Vec::new();
        }
        let cells = [*q, *k, *v, *mask];
        let mut out = Vec::new();
        // The devices' parts are found without help from the model's slices.
        terms.notes_slices = false;
        for parts in terms.cell_parts.clone() {
            out.extend(merged(terms, op, cells, sinks, parts).ok());
        }
        terms.notes_slices = true;
        out
    },
};

fn merged(
    terms: &mut TermGraph,
    op: &FlashAttn,
    [q, k, v, mask]: [Id; 4],
    sinks: &[Id],
    of: u64,
) -> Result<Id, NotExpressible> {
    let one = |terms: &TermGraph, id: Id, axes: std::ops::Range<usize>| {
        terms
            .ty(id)
            .is_some_and(|t| t.dims[axes].iter().all(Dim::is_one))
    };
    if !one(terms, q, 3..RANK) || !one(terms, mask, 2..RANK) {
        return Err(NotExpressible);
    }
    let attention = FlashAttn {
        lse: true,
        ..op.clone()
    };
    let mut all = Vec::new();
    for first in 0..of {
        let part = CellParts {
            first,
            count: 1,
            of,
        };
        let k = terms.on_axis(k, 1, held(part)?)?;
        let v = terms.on_axis(v, 1, held(part)?)?;
        let mask = terms.on_axis(mask, 0, held(part)?)?;
        all.push(terms.add_op(&attention.clone().into(), 0, vec![q, k, v, mask]));
    }
    let joined = terms.add_op(&Concat { axis: 3 }.into(), 0, all.clone());
    terms.attention_parts.extend(all);
    terms.attention_parts.push(joined);
    let args = std::iter::once(joined).chain(sinks.iter().copied());
    Ok(terms.add_op(&MergeAttn.into(), 0, args.collect()))
}

/// Returns the pattern of the cells of these parts; `None` for all cells.
pub(in crate::prove) fn held(cells: CellParts) -> Result<Option<Pattern>, NotExpressible> {
    let run = Interval {
        start: cells.first,
        len: cells.count,
    };
    Pattern::new(&Dim::constant(CELL_BLOCK as u64), cells.of, [run])
}

pub(super) const OWNED_WRITE: ProofRule = ProofRule {
    name: "owned-write",
    equation: "set_rows(x[p], y, i) {own p} = set_rows(x, y, i)[p], if p selects the cells of the device's parts",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::SetRows(op), [x, rows, index]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let (Some(cells), Ok(axis)) = (op.cells, axis_index(op.axis)) else {
            return Vec::new();
        };
        let Ok(Some(own)) = held(cells) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (base, pattern) in cells_of(terms, *x, axis) {
            if pattern == own {
                let whole = SetRows::along(op.axis).into();
                let written = terms.add_op(&whole, 0, vec![base, *rows, *index]);
                out.extend(terms.on_axis(written, axis, Some(pattern)).ok());
            }
        }
        out
    },
};

pub(super) const SLICE_OF_PARTS: ProofRule = ProofRule {
    name: "slice-of-parts",
    equation: "slice(x[p], 0, n) = slice(x, 0, m)[p], if p selects n of m indices alike in each period",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Slice(op), [x]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let symbolic = op.start.is_zero() && op.len.as_const().is_none();
        let Some(axis) = axis_index(op.axis).ok().filter(|_| symbolic) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (base, pattern) in cells_of(terms, *x, axis) {
            let Some(len) = whole_len(&pattern, &op.len) else {
                continue;
            };
            let slice = Slice {
                axis: op.axis,
                start: Dim::ZERO,
                len,
            };
            let fits = terms
                .ty(base)
                .is_some_and(|t| slice.len.at_most(&t.dims[axis]));
            if fits {
                let whole = terms.add_op(&slice.into(), 0, vec![base]);
                out.extend(terms.on_axis(whole, axis, Some(pattern)).ok());
            }
        }
        out
    },
};

/// Returns the size of an axis if a pattern selects `len` of its indices; `None` unless the axis has whole periods.
fn whole_len(pattern: &Pattern, len: &Dim) -> Option<Dim> {
    let selected = pattern.unit.checked_mul(&pattern.len().into())?;
    let periods = len.checked_div(&selected)?;
    periods.checked_mul(&pattern.period().ok()?)
}

/// Returns the values that contain `x` as a part along `axis` alone, with the pattern along that axis.
fn cells_of(terms: &TermGraph, x: Id, axis: usize) -> Vec<(Id, Pattern)> {
    let Some(own) = terms.ty(x).map(|t| t.dims.clone()) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    for selection in terms.selections(x) {
        let Some(of) = terms.ty(selection.base) else {
            continue;
        };
        terms.charge_axes(selection.indices());
        let Ok(mut axes) = per_axis(selection.indices(), &of.dims) else {
            continue;
        };
        if selected_dims(&axes, &of.dims).as_ref() != Ok(&own) {
            continue;
        }
        if let Some(pattern) = axes[axis].take()
            && axes.iter().all(Option::is_none)
        {
            out.push((selection.base, pattern));
        }
    }
    out
}

/// If the model permutes the same value, the device's part of that value is the better form: later sections need it.
pub(super) const PERMUTED_UNITS: ProofRule = ProofRule {
    name: "permuted-units",
    equation: "permute(x) = x[all], if only axes of one index move",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::Permute(Permute { axes }), [x]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        if terms.of_model || is_permuted_by_model(terms, &op, &term.args) {
            return Vec::new();
        }
        let Some(ty) = terms.ty(*x) else {
            return Vec::new();
        };
        let moved = (axes.iter().zip(&ty.dims)).filter(|(_, d)| !d.is_one());
        let in_order = moved.clone().is_sorted_by_key(|(&to, _)| to);
        if !in_order {
            return Vec::new();
        }
        let mut dims = [const { Dim::ONE }; RANK];
        for (&to, size) in moved {
            let Some(slot) = usize::try_from(to).ok().and_then(|to| dims.get_mut(to)) else {
                return Vec::new();
            };
            *slot = size.clone();
        }
        let all = from_axes(&[None, None, None, None], &dims);
        all.map(|all| terms.view(*x, all, dims))
            .into_iter()
            .collect()
    },
};

/// True if the model applies the op to a value that contains the operand as a part.
fn is_permuted_by_model(terms: &mut TermGraph, op: &Op, args: &[Id]) -> bool {
    readings(terms, args).into_iter().any(|reading| {
        let bases = reading.iter().map(|f| f.base).collect();
        match find_relation(terms, op, &reading) {
            Some(relation) => terms
                .lookup_op(&relation.op, 0, bases)
                .is_some_and(|id| terms.is_model(id)),
            None => false,
        }
    })
}
