//! Rows that are zero but for those of a window: each device answers for its own experts or rows.

use egg::Id;
use tpc_ir::op::{Binary, BinaryKind};
use tpc_ir::{Op, TensorType};

use super::Rule;
use super::parts::{Seen, related, ways};
use crate::prove::term::{Head, Window};
use crate::prove::terms::Terms;

/// The same mask on each of these arguments, and what is masked; arguments for which `bare` holds need none.
fn masked(
    terms: &Terms,
    args: &[Id],
    bare: impl Fn(usize) -> bool,
) -> Option<(Window, Id, Vec<Id>)> {
    let mut mask: Option<(Window, Id)> = None;
    let mut under = Vec::new();
    for (i, &a) in args.iter().enumerate() {
        let only = terms.only_of(a);
        let found = only.into_iter().find(|(w, _, ids)| {
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

pub(super) const MASKED_ELEMENTS: Rule = Rule {
    name: "masked-elements",
    equation: "f(only(x), only(y)) = only(f(x, y)), where f keeps zeros; only(x) · y = only(x · y)",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        if matches!(op, Op::MulMat(_) | Op::MulMatId(_) | Op::AddId(_)) {
            return Vec::new();
        }
        let types: Option<Vec<&TensorType>> = term.args.iter().map(|&a| terms.ty(a)).collect();
        let (Some(types), Some(ty)) = (types, terms.ty(id)) else {
            return Vec::new();
        };
        let product = matches!(
            op,
            Op::Binary(Binary {
                kind: BinaryKind::Mul
            })
        );
        let by_rows = |i: usize| rows_alike(types[i], ty);
        if !op.rule(&types, &[ty]).keeps_zero || !(0..types.len()).all(|i| product || by_rows(i)) {
            return Vec::new();
        }
        let rows: Vec<bool> = (0..types.len()).map(by_rows).collect();
        match masked(terms, &term.args, |_| product) {
            Some((window, ids, under)) => {
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
                vec![terms.add(Head::Only(window), vec![value, ids])]
            }
            None => Vec::new(),
        }
    },
};

pub(super) const WINDOW_OF_MASKED: Rule = Rule {
    name: "window-of-masked",
    equation: "mul_mat_id[w](e, only(x, w, ids), ids) = mul_mat_id[w](e, x, ids)",
    apply: |terms, term, _| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::MulMatId(op), [e, x, ids]) = (op, term.args.as_slice()) else {
            return Vec::new();
        };
        let ids = terms.graph.find(*ids);
        let mut out = Vec::new();
        for (window, value, of) in terms.only_of(*x) {
            if Some(window.run) == op.window && terms.graph.find(of) == ids {
                out.push(terms.add_op(&op.clone().into(), result, vec![*e, value, ids]));
            }
        }
        out
    },
};

pub(super) const MASKED_BIAS: Rule = Rule {
    name: "masked-bias",
    equation: "add_id[w](only(x, w, ids), b[w], ids) = only(add_id(x, b, ids), w, ids)",
    apply: |terms, term, _| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::AddId(add), [x, bias, ids]) = (op, term.args.as_slice()) else {
            return Vec::new();
        };
        let ids = terms.graph.find(*ids);
        let mut out = Vec::new();
        for (window, value, of) in terms.only_of(*x) {
            if Some(window.run) != add.window || terms.graph.find(of) != ids {
                continue;
            }
            for seen in ways(terms, &[*bias]).into_iter().flatten() {
                let (Some(x), Some(ids)) = (Seen::whole(terms, value), Seen::whole(terms, ids))
                else {
                    continue;
                };
                let way = [x, seen, ids];
                let whole = related(&add.clone().into(), &way);
                if let Some(relation) = whole
                    && relation.window == Some(window)
                    && relation.results.iter().all(Vec::is_empty)
                {
                    let args = way.iter().map(|s| s.base).collect();
                    let sum = terms.add_op(&relation.op, result, args);
                    out.push(terms.add(Head::Only(window), vec![sum, of]));
                }
            }
        }
        out
    },
};

pub(super) const MASKED_VIEW: Rule = Rule {
    name: "masked-view",
    equation: "only(x)[p] = only(x[p]), where p is about elements of rows",
    apply: |terms, term, _| {
        let Some(view) = terms.view_of(term) else {
            return Vec::new();
        };
        let x = term.args[0];
        let Some(ty) = terms.ty(x).cloned() else {
            return Vec::new();
        };
        let within_rows = view.dims[1..] == ty.dims[1..]
            && view.picks.iter().all(|p| {
                let period = p.period();
                period.is_ok_and(|p| ty.dims[0].checked_div(&p).is_some())
            });
        if !within_rows {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (window, value, ids) in terms.only_of(x) {
            let part = terms.view(value, view.picks.clone(), view.dims.clone());
            out.push(terms.add(Head::Only(window), vec![part, ids]));
        }
        out
    },
};
