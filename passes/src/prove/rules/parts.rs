use std::rc::Rc;

use egg::Id;
use tpc_ir::Op;
use tpc_ir::op::{Norm, NormKind};

use crate::prove::index_set::{per_axis, selected_dims};
use crate::prove::language::Head;
use crate::prove::readings::{derive_relation, find_relation, is_whole, readings};
use crate::prove::relate::Relation;
use crate::prove::term_graph::{ProofRule, TermGraph};

pub(super) const PARTS: ProofRule = ProofRule {
    name: "op-of-parts",
    equation: "f(x[p], y[q], …) = f(x, y, …)[r], as f's rule states; zero outside f's mask",
    apply: |terms, term, id| {
        let Some((op, result)) = terms.op_of(term) else {
            return Vec::new();
        };
        // A value of the model needs no other form, and views have their own rules.
        let is_model = terms.of_model || terms.is_model(id);
        if is_model || term.args.is_empty() || matches!(*op, Op::Reshape(_)) {
            return Vec::new();
        }
        let mut made = Vec::new();
        let mut open = None;
        for reading in readings(terms, &term.args) {
            let found = match &*op {
                Op::SetSlice(_) => terms.set_slices().iter().find_map(|m| {
                    let whole = derive_relation(&op, &reading, Some(m))?;
                    let bases = reading.iter().map(|s| s.base).collect();
                    terms.lookup_op(&whole.op, result, bases)?;
                    Some(Rc::new(whole))
                }),
                _ => find_relation(terms, &op, &reading),
            };
            let Some(relation) = found else {
                continue;
            };
            if relation.summed.is_some() || is_whole(&reading) && relation.op == *op {
                continue;
            }
            let bases: Vec<Id> = reading.iter().map(|f| f.base).collect();
            match terms.lookup_op(&relation.op, result, bases.clone()) {
                Some(whole) => made.extend(part(terms, id, whole, &relation, result, &bases)),
                // Neither the model nor a device has the whole of a long concatenation.
                None if open.is_none() && bases.len() <= MAX_OPERANDS => {
                    open = Some((relation, bases));
                }
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

const MAX_OPERANDS: usize = 16;

/// Returns the part that the relation gives, if it has the sizes of the device's result.
fn part(
    terms: &mut TermGraph,
    id: Id,
    whole: Id,
    relation: &Relation,
    result: u8,
    bases: &[Id],
) -> Option<Id> {
    let indices = relation.results.get(usize::from(result))?.clone();
    let dims = terms.ty(id)?.dims.clone();
    terms.charge_axes(&indices);
    let of = &terms.ty(whole)?.dims;
    if selected_dims(&per_axis(&indices, of).ok()?, of).ok()? != dims {
        return None;
    }
    match relation.mask {
        None => Some(terms.view(whole, indices, dims)),
        Some(mask) => {
            let (value, ids) = match &relation.op {
                Op::GetRows(_) => (whole, *bases.get(1)?),
                Op::MulMatId(_) => (whole, *bases.get(2)?),
                // Outside the mask the op adds zero; if its operand is zero, the result is zero there.
                Op::AddId(_) if terms.is_zero(*bases.first()?) => (whole, *bases.get(2)?),
                _ => return None,
            };
            let masked = terms.add(Head::Mask(mask), vec![value, ids]);
            Some(terms.view(masked, indices, dims))
        }
    }
}

pub(super) const NORM_IN_TWO_STEPS: ProofRule = ProofRule {
    name: "norm-in-two-steps",
    equation: "norm_apply(x, norm_stats(x)) = norm(x)",
    apply: |terms, term, _| {
        let Some((op, _)) = terms.op_of(term) else {
            return Vec::new();
        };
        let (Op::NormApply(apply), [x, stats]) = (&*op, term.args.as_slice()) else {
            return Vec::new();
        };
        let of_whole = terms.ty(*x).is_some_and(|t| t.dims[0] == apply.n);
        let x_id = terms.graph.find(*x);
        let own = terms.ops_of(*stats).into_iter().any(|(op, _, args)| {
            matches!(&*op, Op::NormStats(s) if s.kind == apply.kind)
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
