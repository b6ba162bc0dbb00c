//! Masks: all rows are zero except the rows of a device's experts or indices.

use egg::Id;
use tpc_ir::op::{Binary, BinaryKind};
use tpc_ir::{Op, TensorType};

use crate::prove::language::{Head, Mask};
use crate::prove::readings::{ArgPart, find_relation, readings};
use crate::prove::term_graph::{ProofRule, TermGraph};

/// Returns the arguments' common mask, its indices, and the masked values. Arguments in `bare` may lack a mask.
fn find_common_mask(
    terms: &TermGraph,
    args: &[Id],
    bare: impl Fn(usize) -> bool,
) -> Option<(Mask, Id, Vec<Id>)> {
    let mut mask: Option<(Mask, Id)> = None;
    let mut under = Vec::new();
    for (i, &a) in args.iter().enumerate() {
        let masks = terms.masks_of(a);
        let found = masks.into_iter().find(|(w, _, ids)| {
            mask.is_none_or(|(v, of)| v == *w && terms.graph.find(of) == terms.graph.find(*ids))
        });
        match found {
            Some((w, value, ids)) => {
                mask = Some((w, ids));
                under.push(value);
            }
            None if bare(i) => under.push(a),
            None => return None,
        }
    }
    mask.map(|(w, ids)| (w, ids, under))
}

fn rows_alike(a: &TensorType, b: &TensorType) -> bool {
    a.dims[1..] == b.dims[1..]
}

pub(super) const MASKED_ELEMENTS: ProofRule = ProofRule {
    name: "masked-elements",
    equation: "f(mask(x), mask(y)) = mask(f(x, y)), if f keeps zeros; mask(x) · y = mask(x · y), if y is numbers",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        if matches!(*op, Op::MulMat(_) | Op::MulMatId(_) | Op::AddId(_)) {
            return Vec::new();
        }
        let types: Option<Vec<&TensorType>> = term.args.iter().map(|&a| terms.ty(a)).collect();
        let (Some(types), Some(ty)) = (types, terms.ty(id)) else {
            return Vec::new();
        };
        let product = matches!(
            *op,
            Op::Binary(Binary {
                kind: BinaryKind::Mul
            })
        );
        let by_rows = |i: usize| rows_alike(types[i], ty);
        if !op.rule(&types, &[ty]).keeps_zero || !(0..types.len()).all(|i| product || by_rows(i)) {
            return Vec::new();
        }
        let rows: Vec<bool> = (0..types.len()).map(by_rows).collect();
        let bare = |k: usize| product && terms.is_number(term.args[k]);
        match find_common_mask(terms, &term.args, bare) {
            Some((mask, ids, under)) => {
                // The masked operand has the result's rows.
                let fits = term
                    .args
                    .iter()
                    .zip(&under)
                    .zip(&rows)
                    .all(|((a, u), &r)| a == u || r);
                if !fits {
                    return Vec::new();
                }
                let value = terms.add_op(&op, result, under);
                vec![terms.add(Head::Mask(mask), vec![value, ids])]
            }
            None => Vec::new(),
        }
    },
};

pub(super) const WINDOW_OF_MASKED: ProofRule = ProofRule {
    name: "window-of-masked",
    equation: "mul_mat_id[w](e, mask(x, w, ids), ids) = mul_mat_id[w](e, x, ids)",
    apply: |terms, term, _| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::MulMatId(op), [e, x, ids]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let ids = terms.graph.find(*ids);
        let mut out = Vec::new();
        for (mask, value, of) in terms.masks_of(*x) {
            if Some(mask.rows) == op.window && terms.graph.find(of) == ids {
                out.push(terms.add_op(&op.clone().into(), result, vec![*e, value, ids]));
            }
        }
        out
    },
};

pub(super) const MASKED_BIAS: ProofRule = ProofRule {
    name: "masked-bias",
    equation: "add_id[w](mask(x, w, ids), b[w], ids) = mask(add_id(x, b, ids), w, ids)",
    apply: |terms, term, _| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::AddId(add), [x, bias, ids]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let ids = terms.graph.find(*ids);
        let mut out = Vec::new();
        for (mask, value, of) in terms.masks_of(*x) {
            if Some(mask.rows) != add.window || terms.graph.find(of) != ids {
                continue;
            }
            for seen in readings(terms, &[*bias]).into_iter().flatten() {
                let (Some(x), Some(ids)) =
                    (ArgPart::whole(terms, value), ArgPart::whole(terms, ids))
                else {
                    continue;
                };
                let reading = [x, seen, ids];
                let whole = find_relation(terms, &op, &reading);
                if let Some(relation) = whole
                    && relation.mask == Some(mask)
                    && relation.results.iter().all(Vec::is_empty)
                {
                    let args = reading.iter().map(|s| s.base).collect();
                    let sum = terms.add_op(&relation.op, result, args);
                    out.push(terms.add(Head::Mask(mask), vec![sum, of]));
                }
            }
        }
        out
    },
};

pub(super) const MASKED_VIEW: ProofRule = ProofRule {
    name: "masked-view",
    equation: "mask(x)[p] = mask(x[p]), if p selects elements of rows",
    apply: |terms, term, _| {
        let Some(view) = terms.view_of(term) else {
            return Vec::new();
        };
        let x = term.args[0];
        let Some(ty) = terms.ty(x).cloned() else {
            return Vec::new();
        };
        let within_rows = view.dims[1..] == ty.dims[1..]
            && view.indices.iter().all(|p| {
                let period = p.period();
                period.is_ok_and(|p| ty.dims[0].checked_div(&p).is_some())
            });
        if !within_rows {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (mask, value, ids) in terms.masks_of(x) {
            let part = terms.view(value, view.indices.clone(), view.dims.clone());
            out.push(terms.add(Head::Mask(mask), vec![part, ids]));
        }
        out
    },
};
