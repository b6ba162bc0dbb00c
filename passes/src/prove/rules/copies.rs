use egg::Id;
use tpc_ir::op::{Binary, BinaryKind, Repeat};
use tpc_ir::{Dim, Op, RANK, TensorType};

use crate::prove::index_set::{Pattern, per_axis, selected_dims};
use crate::prove::term_graph::{ProofRule, TermGraph};

pub(super) const VIEW_OF_COPIES: ProofRule = ProofRule {
    name: "view-of-copies",
    equation: "repeat(x)[some of the copies] = repeat(x)",
    apply: |terms, term, _| {
        let Some(view) = terms.view_of(term) else {
            return Vec::new();
        };
        let of = terms.ops_of(term.args[0]).into_iter();
        let of = of.filter_map(|(op, _, args)| match (&*op, args.as_slice()) {
            (Op::Repeat(_), &[x]) => Some(x),
            _ => None,
        });
        let repeated: Vec<Id> = of.collect();
        let Some(all) = terms.ty(term.args[0]).filter(|_| !repeated.is_empty()) else {
            return Vec::new();
        };
        let Ok(axes) = per_axis(&view.indices, &all.dims) else {
            return Vec::new();
        };
        if selected_dims(&axes, &all.dims).as_ref() != Ok(&view.dims) {
            return Vec::new();
        }
        let mut out = Vec::new();
        for x in repeated {
            let whole_copies = terms.ty(x).is_some_and(|of| {
                let whole = |a: usize, p: &Pattern| p.unit.checked_div(&of.dims[a]).is_some();
                (0..RANK).all(|a| axes[a].as_ref().is_none_or(|p| whole(a, p)))
            });
            if whole_copies {
                let dims = view.dims.clone();
                out.push(terms.add_op(&Repeat { dims }.into(), 0, vec![x]));
            }
        }
        out
    },
};

pub(super) const CONCAT_OF_COPIES: ProofRule = ProofRule {
    name: "concat-of-copies",
    equation: "concat(repeat(x), repeat(x), …) = repeat(x); repeat(x) = x, if the sizes are equal",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Some(dims) = terms.ty(id).map(|t| t.dims.clone()) else {
            return Vec::new();
        };
        let same = |terms: &TermGraph, x: Id| terms.ty(x).is_some_and(|t| t.dims == dims);
        let axis = match (&*op, term.args.as_slice()) {
            (Op::Repeat(_), &[x]) if same(terms, x) => return vec![x],
            (Op::Concat(c), _) => usize::try_from(c.axis).ok().filter(|&a| a < RANK),
            _ => None,
        };
        let Some(axis) = axis else { return Vec::new() };
        let repeated = |terms: &TermGraph, a: Id| {
            let of = terms.ops_of(a).into_iter();
            let of = of.filter(|(op, _, _)| matches!(**op, Op::Repeat(_)));
            let mut of: Vec<Id> = of.map(|(_, _, args)| terms.graph.find(args[0])).collect();
            of.push(terms.graph.find(a));
            of
        };
        let Some(first) = term.args.first() else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for x in repeated(terms, *first) {
            let all = term.args.iter().all(|&a| repeated(terms, a).contains(&x));
            let whole = terms.ty(x).is_some_and(|t| {
                let times = |a: Id| {
                    terms
                        .ty(a)
                        .and_then(|o| o.dims[axis].checked_div(&t.dims[axis]))
                };
                dims.iter()
                    .zip(&t.dims)
                    .all(|(d, of)| d.checked_div(of).is_some())
                    && term.args.iter().all(|&a| times(a).is_some())
            });
            if all && whole {
                let dims = dims.clone();
                out.push(terms.add_op(&Repeat { dims }.into(), 0, vec![x]));
            }
        }
        out
    },
};

/// A repetition of `x` along an axis of `n` indices has `x`'s index `i mod n` at index `i`. If an op's result at index
/// `i` depends on the operand's index `i` but not on `i` itself, the op commutes with the repetition.
pub(super) const OP_OF_COPIES: ProofRule = ProofRule {
    name: "op-of-copies",
    equation: "f(repeat(x), y) = repeat(f(x, y)), if f treats all copies alike",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Some(k) = copied_operand(&op) else {
            return Vec::new();
        };
        let (Some(&all), Some(own)) = (term.args.get(k), terms.ty(id).cloned()) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (repeat, _, of) in terms.ops_of(all) {
            let (Op::Repeat(_), &[x]) = (&*repeat, of.as_slice()) else {
                continue;
            };
            let alike = match (terms.ty(x), terms.ty(all)) {
                (Some(once), Some(whole)) => {
                    let others: Option<Vec<&TensorType>> =
                        term.args.iter().map(|&a| terms.ty(a)).collect();
                    let copied = (0..RANK).filter(|&a| once.dims[a] != whole.dims[a]);
                    let mut copied = copied.peekable();
                    let empty = once.dims.iter().any(Dim::is_zero);
                    copied.peek().is_some()
                        && !empty
                        && others.is_some_and(|t| copied.all(|a| is_alike(&op, &t, a)))
                }
                _ => false,
            };
            if alike {
                let mut args = term.args.to_vec();
                args[k] = x;
                let once = terms.add_op(&op, result, args);
                let dims = own.dims.clone();
                out.push(terms.add_op(&Repeat { dims }.into(), 0, vec![once]));
            }
        }
        out
    },
};

const fn copied_operand(op: &Op) -> Option<usize> {
    match op {
        Op::MulMat(_) => Some(1),
        Op::Unary(_) | Op::Scale(_) | Op::Clamp(_) | Op::Cast(_) | Op::Norm(_) | Op::Rope(_) => {
            Some(0)
        }
        Op::Binary(Binary {
            kind: BinaryKind::Mul | BinaryKind::Div,
        }) => Some(0),
        _ => None,
    }
}

/// True if an op treats all indices along an axis of its repeated operand the same. The result has the axis, too.
fn is_alike(op: &Op, operands: &[&TensorType], axis: usize) -> bool {
    match op {
        // Columns, and batches that share one matrix, are alike.
        Op::MulMat(_) => axis == 1 || axis > 1 && operands[0].dims[axis].is_one(),
        Op::Unary(_) | Op::Scale(_) | Op::Clamp(_) | Op::Cast(_) => true,
        // Rows are alike.
        Op::Norm(_) => axis > 0,
        // Heads are alike; tokens have positions.
        Op::Rope(_) => axis == 1,
        Op::Binary(_) => operands[1].dims[axis].is_one(),
        _ => false,
    }
}
