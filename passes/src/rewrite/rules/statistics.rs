//! Statistics of norms over split axes: a few numbers per row; each sum costs a latency.

use egg::Id;
use tpc_ir::op::{Concat, Slice};
use tpc_ir::{Dim, Op, Sharding, TensorType, Unreduced};

use super::{RewriteRule, all_reduce, sums_of};
use crate::rewrite::analysis::{EGraph, ShardedType, insert, type_of};
use crate::rewrite::language::{Head, Node};

/// `all_reduce(a), all_reduce(b) = slices of all_reduce(concat(a, b))` for statistics of norms.
pub(super) const STATISTICS_TOGETHER: RewriteRule = RewriteRule {
    name: "statistics-together",
    equation: "all_reduce(a) = slice(all_reduce(concat(a, b)))",
    condition: "a and b are statistics of norms over split axes, with the same number of rows",
    apply: |egraph, eclass, node, equal| {
        if egraph[eclass].nodes.first() != Some(node) {
            return;
        }
        let Some(own) = statistics(egraph, eclass) else {
            return;
        };
        let mut others: Vec<(Id, Id)> = (egraph.classes())
            .filter_map(|c| Some((c.id, statistics(egraph, c.id)?)))
            .filter(|&(_, sum)| sum > own && is_alike(type_of(egraph, sum), type_of(egraph, own)))
            .collect();
        others.sort_unstable();
        for other in others {
            concat_statistics(egraph, [(eclass, own), other], equal);
        }
    },
};

fn statistics(egraph: &EGraph, eclass: Id) -> Option<Id> {
    let is_stats = |id: &Id| {
        egraph[*id].nodes.iter().any(|n| match n.head {
            Head::Op(op, _) => matches!(egraph.analysis.op(op), Op::NormStats(_)),
            _ => false,
        })
    };
    sums_of(egraph, eclass).into_iter().find(is_stats)
}

fn is_alike(a: &ShardedType, b: &ShardedType) -> bool {
    a.place == b.place && a.ty.dtype == b.ty.dtype && a.ty.dims[1..] == b.ty.dims[1..]
}

fn concat_statistics(egraph: &mut EGraph, parts: [(Id, Id); 2], equal: &mut super::EqualPairs) {
    let origin = egraph[parts[0].0].data.origin;
    let first = type_of(egraph, parts[0].1).clone();
    let lens = parts.map(|(_, sum)| type_of(egraph, sum).ty.dims[0].clone());
    let Some(len) = lens[0].checked_add(&lens[1]) else {
        return;
    };
    let value = |len: &Dim, unreduced: Unreduced| -> ShardedType {
        ShardedType {
            ty: TensorType::with_dim(&first.ty, 0, len.clone()),
            place: first.place,
            sharding: Sharding::unreduced(unreduced),
        }
    };
    let op = egraph.analysis.op_ref(&Concat { axis: 0 }.into());
    let out = egraph
        .analysis
        .types_ref(vec![value(&len, Unreduced::Partial)]);
    let whole = egraph.analysis.whole(out);
    let head = Head::Op(op, out);
    let operands = parts.map(|(_, sum)| sum).to_vec();
    let both = insert(egraph, Node { head, operands }, origin);
    let summed = all_reduce(egraph, both, whole, origin);
    let mut start = Dim::ZERO;
    for ((eclass, _), len) in parts.into_iter().zip(lens) {
        let slice = Slice {
            axis: 0,
            start: start.clone(),
            len: len.clone(),
        };
        let op = egraph.analysis.op_ref(&slice.into());
        let out = egraph
            .analysis
            .types_ref(vec![value(&len, Unreduced::None)]);
        let origin = egraph[eclass].data.origin;
        let head = Head::Op(op, out);
        let operands = vec![summed];
        let id = insert(egraph, Node { head, operands }, origin);
        equal.push((eclass, id));
        start = len;
    }
}
