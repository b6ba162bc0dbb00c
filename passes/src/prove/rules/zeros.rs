//! Zeros, padding, and tensors without elements.

use tpc_ir::op::{Expr, Role, Slot};
use tpc_ir::{Dim, Interval, Op, TensorType};

use crate::prove::index_set::Pattern;
use crate::prove::language::is_empty;
use crate::prove::term_graph::ProofRule;

pub(super) const ZERO_RESULT: ProofRule = ProofRule {
    name: "zero-result",
    equation: "f(x) = 0, if f is defined and sums over no indices, computes no rows, or only pads; f(0) = 0, if \
    f keeps zeros",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        if !terms.is_defined(&op, &term.args) {
            return Vec::new();
        }
        let types: Option<Vec<&TensorType>> = term.args.iter().map(|&a| terms.ty(a)).collect();
        let (Some(types), Some(ty)) = (types, terms.ty(id)) else {
            return Vec::new();
        };
        let all_zero = !term.args.is_empty() && term.args.iter().all(|&a| terms.is_zero(a));
        let zero = match &*op {
            Op::Pad(_) => types.iter().any(|t| is_empty(t)),
            Op::GetRows(o) => o.window.is_some_and(|w| w.len == 0),
            Op::MulMatId(o) if o.window.is_some_and(|w| w.len == 0) => true,
            Op::AddId(o) if o.window.is_some_and(|w| w.len == 0) => {
                term.args.first().is_some_and(|&x| terms.is_zero(x))
            }
            op if all_zero && op.rule(&types, &[ty]).keeps_zero => true,
            _ => op.rule(&types, &[ty]).roles.iter().any(|(role, expr)| {
                let Expr::Axis(Slot::Operand(o), a) = expr else {
                    return false;
                };
                *role == Role::Reduce && types.get(*o).is_some_and(|t| t.dims[*a].is_zero())
            }),
        };
        if !zero {
            return Vec::new();
        }
        let ty = ty.clone();
        vec![terms.zero(&ty)]
    },
};

pub(super) const PADDED_CONTRACTION: ProofRule = ProofRule {
    name: "padded-contraction",
    equation: "mul_mat(w, pad(x)) = mul_mat(w[without the padding], x), if w is numbers",
    apply: |terms, term, _| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        if !op.is_product() || term.args.len() < 2 || !terms.is_number(term.args[0]) {
            return Vec::new();
        }
        let mut out = Vec::new();
        for (pad, _, of) in terms.ops_of(term.args[1]) {
            let (Op::Pad(pad), [x]) = (&*pad, of.as_slice()) else {
                continue;
            };
            let w = term.args[0];
            let size = |id| terms.ty(id).and_then(|t| t.dims[0].as_const());
            let (0, Some(held), Some(used)) = (pad.axis, size(w), size(*x)) else {
                continue;
            };
            let interval = Interval {
                start: pad.before,
                len: used,
            };
            let trimmed =
                Pattern::new(&Dim::ONE, held, [interval]).and_then(|p| terms.on_axis(w, 0, p));
            if let Ok(trimmed) = trimmed {
                let mut args = term.args.to_vec();
                args[0] = trimmed;
                args[1] = *x;
                out.push(terms.add_op(&op, result, args));
            }
        }
        out
    },
};

pub(super) const CONCAT_OF_ONE: ProofRule = ProofRule {
    name: "concat-of-one",
    equation: "concat(x) = x; concat drops operands without elements",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Op::Concat(concat) = &*op else {
            return Vec::new();
        };
        let axis = usize::try_from(concat.axis).unwrap_or(usize::MAX);
        let some: Vec<_> = term
            .args
            .iter()
            .copied()
            .filter(|&a| {
                let size = terms.ty(a).and_then(|t| t.dims.get(axis).cloned());
                size.is_none_or(|d| !d.is_zero())
            })
            .collect();
        match some.as_slice() {
            [] => Vec::new(),
            [one] => vec![*one],
            _ if some.len() < term.args.len() => vec![terms.add_op(&op, 0, some)],
            _ => Vec::new(),
        }
    },
};

pub(super) const EMPTY_SLICE_SET: ProofRule = ProofRule {
    name: "empty-slice-set",
    equation: "set_slice(x, y) = x, if y has no elements",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        match (&*op, term.args.as_slice()) {
            (Op::SetSlice(_), &[x, y]) if terms.ty(y).is_some_and(is_empty) => vec![x],
            _ => Vec::new(),
        }
    },
};
