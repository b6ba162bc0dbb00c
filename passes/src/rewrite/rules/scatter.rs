//! Row-wise work between a reduce-scatter and an all-gather: each device computes its part of every row.

use egg::Id;
use tpc_ir::op::{AllGather, AllReduce, Copy, Norm, NormApply, NormStats, ReduceScatter};
use tpc_ir::{AxisTree, ClassRef, DType, Op, Place, Sharding, TensorType, Unreduced};

use super::{RewriteRule, all_reduce, local_op};
use crate::rewrite::analysis::{EGraph, ShardedType, even_cut, insert, type_of};
use crate::rewrite::language::{Head, Node};

/// `all_reduce(a) = all_gather(reduce_scatter(a))`: the same bytes, one more latency on the right.
pub(super) const SCATTERED_SUM: RewriteRule = RewriteRule {
    name: "scattered-sum",
    equation: "all_reduce(a) = all_gather(reduce_scatter(a))",
    condition: "rows have at least one element per device",
    apply: |egraph, eclass, node, equal| {
        let Head::Op(op, out) = node.head else {
            return;
        };
        if !matches!(egraph.analysis.op(op), Op::AllReduce(AllReduce)) {
            return;
        }
        let whole = egraph.analysis.ty(out).clone();
        let partial = type_of(egraph, node.operands[0]).sharding.unreduced == Unreduced::Partial;
        if !partial || whole.ty.dtype != DType::F32 {
            return;
        }
        let Some(part) = part(egraph, &whole) else {
            return;
        };
        let op = ReduceScatter {
            axis: 0,
            counts: Vec::new(),
        };
        let scattered = make(egraph, op, node.operands.clone(), part, eclass);
        let gathered = gather(egraph, scattered, whole, eclass);
        equal.push((eclass, gathered));
    },
};

/// `f(all_gather(a), m) = all_gather(f(a, part of m))` for element-wise ops.
pub(super) const PARTS_OF_ROWS: RewriteRule = RewriteRule {
    name: "parts-of-rows",
    equation: "f(all_gather(a), m) = all_gather(f(a, part(m)))",
    condition: "f keeps the split of its rows; m is whole, and each device takes its part",
    apply: |egraph, eclass, node, equal| {
        let Some((op, out)) = local_op(egraph, node) else {
            return;
        };
        let to = egraph.analysis.ty(out).clone();
        let gathered: Vec<Option<Id>> = (node.operands.iter())
            .map(|&o| gathered_from(egraph, o))
            .collect();
        if gathered.iter().all(Option::is_none) || !to.sharding.is_mirrored() {
            return;
        }
        let Some(target) = part(egraph, &to) else {
            return;
        };
        let mut operands = Vec::new();
        for (&o, from) in node.operands.iter().zip(gathered) {
            let own = type_of(egraph, o).clone();
            let form = match (from, part(egraph, &own)) {
                (Some(part), _) => part,
                (None, Some(part)) if own.sharding.is_mirrored() => {
                    make(egraph, Copy, vec![o], part, eclass)
                }
                _ => o,
            };
            operands.push(form);
        }
        let outs = operands.iter().map(|&o| egraph[o].data.types).collect();
        let made = egraph.analysis.derive(op, outs, out);
        if made.is_none_or(|made| *egraph.analysis.ty(made) != target) {
            return;
        }
        let op = egraph.analysis.op(op).clone();
        let made = make(egraph, op, operands, target, eclass);
        let gathered = gather(egraph, made, to, eclass);
        equal.push((eclass, gathered));
    },
};

pub(super) const NORM_OF_PARTS: RewriteRule = RewriteRule {
    name: "norm-of-parts",
    equation: "norm(all_gather(a)) = all_gather(norm_apply(a, all_reduce(norm_stats(a))))",
    condition: "the statistics cost an all-reduce of a few numbers per row",
    apply: |egraph, eclass, node, equal| {
        let Some((op, out)) = local_op(egraph, node) else {
            return;
        };
        let Op::Norm(Norm { kind, eps }) = *egraph.analysis.op(op) else {
            return;
        };
        let to = egraph.analysis.ty(out).clone();
        let Some(from) = gathered_from(egraph, node.operands[0]) else {
            return;
        };
        let (Some(part), Some(n)) = (part(egraph, &to), to.ty.dims[0].as_const()) else {
            return;
        };
        let stats = ShardedType {
            ty: TensorType::with_dim(&to.ty, 0, kind.stats().into()),
            place: to.place,
            sharding: Sharding::unreduced(Unreduced::Partial),
        };
        let stats_ref = egraph.analysis.types_ref(vec![stats.clone()]);
        let whole = egraph.analysis.whole(stats_ref);
        let stats = make(egraph, NormStats { kind }, vec![from], stats, eclass);
        let origin = egraph[eclass].data.origin;
        let sum = all_reduce(egraph, stats, whole, origin);
        let apply = NormApply { kind, eps, n };
        let made = make(egraph, apply, vec![from, sum], part, eclass);
        let gathered = gather(egraph, made, to, eclass);
        equal.push((eclass, gathered));
    },
};

fn gathered_from(egraph: &EGraph, eclass: Id) -> Option<Id> {
    let gather = |n: &Node| match n.head {
        Head::Op(op, _) => match egraph.analysis.op(op) {
            Op::AllGather(AllGather { axis: 0 }) => Some(egraph.find(n.operands[0])),
            _ => None,
        },
        _ => None,
    };
    egraph[eclass].nodes.iter().filter_map(gather).min()
}

/// Returns a whole type with its rows cut into nearly equal parts. Returns `None` if rows are too short or cuts would
/// fall inside quantisation blocks. All values of a chain have equal cuts, so such a chain stays whole.
fn part(egraph: &mut EGraph, whole: &ShardedType) -> Option<ShardedType> {
    let Place::Group(_) = whole.place else {
        return None;
    };
    let n = whole.ty.dims[0].as_const()?;
    let ranks = egraph.analysis.ranks(whole.place) as u64;
    if ranks < 2 || n < ranks {
        return None;
    }
    let block = whole.ty.dtype.block_len();
    if (0..ranks).any(|rank| !even_cut(n, ranks, rank).is_multiple_of(block)) {
        return None;
    }
    let class = egraph.analysis.even_class(n, ranks);
    let leaf = AxisTree::Leaf {
        size: n.into(),
        split: Some(ClassRef { class, div: 1 }),
    };
    let rest = |a: usize| AxisTree::whole(whole.ty.dims[a].clone());
    Some(ShardedType {
        sharding: Sharding::split([leaf, rest(1), rest(2), rest(3)]),
        ..whole.clone()
    })
}

fn make(
    egraph: &mut EGraph,
    op: impl Into<Op>,
    operands: Vec<Id>,
    out: ShardedType,
    eclass: Id,
) -> Id {
    let op = egraph.analysis.op_ref(&op.into());
    let head = Head::Op(op, egraph.analysis.types_ref(vec![out]));
    let origin = egraph[eclass].data.origin;
    insert(egraph, Node { head, operands }, origin)
}

fn gather(egraph: &mut EGraph, part: Id, whole: ShardedType, eclass: Id) -> Id {
    make(egraph, AllGather { axis: 0 }, vec![part], whole, eclass)
}
