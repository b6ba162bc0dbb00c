//! Statistics of norms over split axes: a few numbers per row, whose sums cost a latency each.

use egg::Id;
use tpc_ir::op::{Concat, Slice};
use tpc_ir::{Dim, Op, Sharding, TensorType, Unreduced};

use super::{Rule, all_reduce, sums_of};
use crate::rewrite::analysis::{Out, Terms, insert, out_of};
use crate::rewrite::language::{Head, Node};

/// `all_reduce(a), all_reduce(b) = slices of all_reduce(concat(a, b))` for statistics of norms.
pub(super) const STATISTICS_TOGETHER: Rule = Rule {
    name: "statistics-together",
    equation: "all_reduce(a) = slice(all_reduce(concat(a, b)))",
    condition: "a and b are statistics of norms over split axes, of rows in equal number",
    apply: |terms, class, node, equal| {
        if terms[class].nodes.first() != Some(node) {
            return;
        }
        let Some(own) = statistics(terms, class) else {
            return;
        };
        let mut others: Vec<(Id, Id)> = (terms.classes())
            .filter_map(|c| Some((c.id, statistics(terms, c.id)?)))
            .filter(|&(_, sum)| sum > own && alike(out_of(terms, sum), out_of(terms, own)))
            .collect();
        others.sort_unstable();
        for other in others {
            together(terms, [(class, own), other], equal);
        }
    },
};

/// The pending statistics whose all-reduce a class is.
fn statistics(terms: &Terms, class: Id) -> Option<Id> {
    let is_stats = |id: &Id| {
        terms[*id].nodes.iter().any(|n| match n.head {
            Head::Op(op, _) => matches!(terms.analysis.op(op), Op::NormStats(_)),
            _ => false,
        })
    };
    sums_of(terms, class).into_iter().find(is_stats)
}

/// Whether two values differ in their first axis at most.
fn alike(a: &Out, b: &Out) -> bool {
    a.place == b.place && a.ty.dtype == b.ty.dtype && a.ty.dims[1..] == b.ty.dims[1..]
}

/// The sums of two statistics as slices of one.
fn together(terms: &mut Terms, parts: [(Id, Id); 2], equal: &mut super::Equal) {
    let origin = terms[parts[0].0].data.origin;
    let first = out_of(terms, parts[0].1).clone();
    let lens = parts.map(|(_, sum)| out_of(terms, sum).ty.dims[0].clone());
    let Some(len) = lens[0].checked_add(&lens[1]) else {
        return;
    };
    let value = |len: &Dim, unreduced: Unreduced| -> Out {
        Out {
            ty: TensorType::with_dim(&first.ty, 0, len.clone()),
            place: first.place,
            sharding: Sharding::unreduced(unreduced),
        }
    };
    let op = terms.analysis.op_ref(&Concat { axis: 0 }.into());
    let out = terms
        .analysis
        .out_ref(vec![value(&len, Unreduced::Partial)]);
    let whole = terms.analysis.whole(out);
    let head = Head::Op(op, out);
    let operands = parts.map(|(_, sum)| sum).to_vec();
    let both = insert(terms, Node { head, operands }, origin);
    let summed = all_reduce(terms, both, whole, origin);
    let mut start = Dim::ZERO;
    for ((class, _), len) in parts.into_iter().zip(lens) {
        let slice = Slice {
            axis: 0,
            start: start.clone(),
            len: len.clone(),
        };
        let op = terms.analysis.op_ref(&slice.into());
        let out = terms.analysis.out_ref(vec![value(&len, Unreduced::None)]);
        let origin = terms[class].data.origin;
        let head = Head::Op(op, out);
        let operands = vec![summed];
        let id = insert(terms, Node { head, operands }, origin);
        equal.push((class, id));
        start = len;
    }
}
