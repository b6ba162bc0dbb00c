//! Repetitions: one copy is as good as another.

use egg::Id;
use tpc_ir::op::Repeat;
use tpc_ir::{Op, RANK};

use crate::prove::index_set::{Pattern, per_axis, selected_dims};
use crate::prove::term_graph::{ProofRule, TermGraph};

pub(super) const VIEW_OF_COPIES: ProofRule = ProofRule {
    name: "view-of-copies",
    equation: "repeat(x)[some of the copies] = repeat(x)",
    apply: |terms, term, _| {
        let Some(view) = terms.view_of(term) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for (op, _, args) in terms.ops_of(term.args[0]) {
            let (Op::Repeat(all), &[x]) = (op, args.as_slice()) else {
                continue;
            };
            let whole_copies = terms.ty(x).is_some_and(|of| {
                let Ok(axes) = per_axis(&view.indices, &all.dims) else {
                    return false;
                };
                let whole = |a: usize, p: &Pattern| p.unit.checked_div(&of.dims[a]).is_some();
                let whole = (0..RANK).all(|a| axes[a].as_ref().is_none_or(|p| whole(a, p)));
                whole && selected_dims(&axes, &all.dims).is_ok_and(|left| left == view.dims)
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
    equation: "concat(repeat(x), repeat(x), …) = repeat(x); repeat(x) = x, where it is as large",
    apply: |terms, term, id| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let Some(dims) = terms.ty(id).map(|t| t.dims.clone()) else {
            return Vec::new();
        };
        let same = |terms: &TermGraph, x: Id| terms.ty(x).is_some_and(|t| t.dims == dims);
        let axis = match (op, term.args.as_slice()) {
            (Op::Repeat(_), &[x]) if same(terms, x) => return vec![x],
            (Op::Concat(c), _) => usize::try_from(c.axis).ok().filter(|&a| a < RANK),
            _ => None,
        };
        let Some(axis) = axis else { return Vec::new() };
        // The values that an argument may repeat.
        let repeated = |terms: &TermGraph, a: Id| {
            let of = terms.ops_of(a).into_iter();
            let of = of.filter(|(op, _, _)| matches!(op, Op::Repeat(_)));
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
