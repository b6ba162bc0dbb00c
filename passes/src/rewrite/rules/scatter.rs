//! Row-wise work between a reduce-scatter and an all-gather: each device does its part of every row.

use egg::Id;
use tpc_ir::op::{AllGather, AllReduce, Copy, Norm, NormApply, NormStats, ReduceScatter};
use tpc_ir::{AxisTree, ClassRef, DType, Op, Place, Sharding, TensorType, Unreduced};

use super::{Rule, all_reduce, local_op};
use crate::rewrite::analysis::{Out, Terms, insert, out_of};
use crate::rewrite::language::{Head, Node};

/// `all_reduce(a) = all_gather(reduce_scatter(a))`: as many bytes, and a latency more.
pub(super) const SCATTERED_SUM: Rule = Rule {
    name: "scattered-sum",
    equation: "all_reduce(a) = all_gather(reduce_scatter(a))",
    condition: "rows have as many elements as there are devices, or more",
    apply: |terms, class, node, equal| {
        let Head::Op(op, out) = node.head else {
            return;
        };
        if !matches!(terms.analysis.op(op), Op::AllReduce(AllReduce)) {
            return;
        }
        let whole = terms.analysis.out(out).clone();
        let partial = out_of(terms, node.operands[0]).sharding.unreduced == Unreduced::Partial;
        if !partial || whole.ty.dtype != DType::F32 {
            return;
        }
        let Some(part) = part(terms, &whole) else {
            return;
        };
        let op = ReduceScatter {
            axis: 0,
            counts: Vec::new(),
        };
        let scattered = make(terms, op, node.operands.clone(), part, class);
        let gathered = gather(terms, scattered, whole, class);
        equal.push((class, gathered));
    },
};

/// `f(all_gather(a), m) = all_gather(f(a, part of m))` for what works on each element by itself.
pub(super) const PARTS_OF_ROWS: Rule = Rule {
    name: "parts-of-rows",
    equation: "f(all_gather(a), m) = all_gather(f(a, part(m)))",
    condition: "f keeps the split of its rows; m is whole, and each device takes its part",
    apply: |terms, class, node, equal| {
        let Some((op, out)) = local_op(terms, node) else {
            return;
        };
        let to = terms.analysis.out(out).clone();
        let gathered: Vec<Option<Id>> = (node.operands.iter())
            .map(|&o| gathered_from(terms, o))
            .collect();
        if gathered.iter().all(Option::is_none) || !to.sharding.is_mirrored() {
            return;
        }
        let Some(wanted) = part(terms, &to) else {
            return;
        };
        let mut operands = Vec::new();
        for (&o, from) in node.operands.iter().zip(gathered) {
            let own = out_of(terms, o).clone();
            let form = match (from, part(terms, &own)) {
                (Some(part), _) => part,
                (None, Some(part)) if own.sharding.is_mirrored() => {
                    make(terms, Copy, vec![o], part, class)
                }
                _ => o,
            };
            operands.push(form);
        }
        let outs = operands.iter().map(|&o| terms[o].data.out).collect();
        let made = terms.analysis.derive(op, outs, out);
        if made.is_none_or(|made| *terms.analysis.out(made) != wanted) {
            return;
        }
        let op = terms.analysis.op(op).clone();
        let made = make(terms, op, operands, wanted, class);
        let gathered = gather(terms, made, to, class);
        equal.push((class, gathered));
    },
};

/// `norm(all_gather(a)) = all_gather(norm_apply(a, all_reduce(norm_stats(a))))`.
pub(super) const NORM_OF_PARTS: Rule = Rule {
    name: "norm-of-parts",
    equation: "norm(all_gather(a)) = all_gather(norm_apply(a, all_reduce(norm_stats(a))))",
    condition: "the statistics cost an all-reduce of a few numbers per row",
    apply: |terms, class, node, equal| {
        let Some((op, out)) = local_op(terms, node) else {
            return;
        };
        let Op::Norm(Norm { kind, eps }) = *terms.analysis.op(op) else {
            return;
        };
        let to = terms.analysis.out(out).clone();
        let Some(from) = gathered_from(terms, node.operands[0]) else {
            return;
        };
        let (Some(part), Some(n)) = (part(terms, &to), to.ty.dims[0].as_const()) else {
            return;
        };
        let stats = Out {
            ty: TensorType::with_dim(&to.ty, 0, kind.stats().into()),
            place: to.place,
            sharding: Sharding::unreduced(Unreduced::Partial),
        };
        let stats_ref = terms.analysis.out_ref(vec![stats.clone()]);
        let whole = terms.analysis.whole(stats_ref);
        let stats = make(terms, NormStats { kind }, vec![from], stats, class);
        let origin = terms[class].data.origin;
        let sum = all_reduce(terms, stats, whole, origin);
        let apply = NormApply { kind, eps, n };
        let made = make(terms, apply, vec![from, sum], part, class);
        let gathered = gather(terms, made, to, class);
        equal.push((class, gathered));
    },
};

/// What is gathered along rows to make a class.
fn gathered_from(terms: &Terms, class: Id) -> Option<Id> {
    let gather = |n: &Node| match n.head {
        Head::Op(op, _) => match terms.analysis.op(op) {
            Op::AllGather(AllGather { axis: 0 }) => Some(terms.find(n.operands[0])),
            _ => None,
        },
        _ => None,
    };
    terms[class].nodes.iter().filter_map(gather).min()
}

/// A whole value of a group with its rows cut into parts of equal length, nearly; `None` where rows are too short.
fn part(terms: &mut Terms, whole: &Out) -> Option<Out> {
    let Place::Group(_) = whole.place else {
        return None;
    };
    let n = whole.ty.dims[0].as_const()?;
    let ranks = terms.analysis.ranks(whole.place) as u64;
    if ranks < 2 || n < ranks {
        return None;
    }
    let class = terms.analysis.even_class(n, ranks);
    let leaf = AxisTree::Leaf {
        size: n.into(),
        split: Some(ClassRef { class, div: 1 }),
    };
    let rest = |a: usize| AxisTree::whole(whole.ty.dims[a].clone());
    Some(Out {
        sharding: Sharding::split([leaf, rest(1), rest(2), rest(3)]),
        ..whole.clone()
    })
}

fn make(terms: &mut Terms, op: impl Into<Op>, operands: Vec<Id>, out: Out, class: Id) -> Id {
    let op = terms.analysis.op_ref(&op.into());
    let head = Head::Op(op, terms.analysis.out_ref(vec![out]));
    let origin = terms[class].data.origin;
    insert(terms, Node { head, operands }, origin)
}

fn gather(terms: &mut Terms, part: Id, whole: Out, class: Id) -> Id {
    make(terms, AllGather { axis: 0 }, vec![part], whole, class)
}
