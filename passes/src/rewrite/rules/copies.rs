use egg::Id;
use tpc_ir::Op;
use tpc_ir::op::{Copy, ShardedTensor};
use tpc_ir::verify::derive_operand;

use super::{EqualPairs, RewriteRule};
use crate::rewrite::analysis::{EGraph, ShardedType, insert, type_of};
use crate::rewrite::language::{Head, Node};

/// Defines a rule that moves an op across a copy, with its name and equation.
macro_rules! moved {
    ($op:literal before copy, $fits:expr, $condition:literal) => {
        RewriteRule {
            name: concat!($op, "-then-copy"),
            equation: concat!($op, "(copy(x)) = copy(", $op, "(x))"),
            condition: $condition,
            apply: |egraph, eclass, node, equal| {
                move_copy_before(egraph, eclass, node, equal, $fits)
            },
        }
    };
    ($op:literal after copy, $fits:expr, $condition:literal) => {
        RewriteRule {
            name: concat!("copy-then-", $op),
            equation: concat!("copy(", $op, "(x)) = ", $op, "(copy(x))"),
            condition: $condition,
            apply: |egraph, eclass, node, equal| {
                move_copy_after(egraph, eclass, node, equal, $fits)
            },
        }
    };
}

/// Removed elements do not cross the link.
pub(super) const SLICE_THEN_COPY: RewriteRule = moved!(
    "slice" before copy,
    |op| matches!(op, Op::Slice(_)),
    "the division of x lets each device slice its part"
);

/// A slice after a view can then also move before the copy.
pub(super) const VIEW_THEN_COPY: RewriteRule = moved!(
    "view" before copy,
    Op::is_layout,
    "view reshapes or permutes; the division of x lets each device do it"
);

/// Several views of a value then cross the link once.
pub(super) const COPY_THEN_VIEW: RewriteRule = moved!(
    "view" after copy,
    Op::is_layout,
    "view reshapes or permutes; the copy of x can be divided like the copy of its view"
);

/// Only one of the equal rows crosses the link.
pub(super) const COPY_THEN_REPEAT: RewriteRule = moved!(
    "repeat" after copy,
    |op| matches!(op, Op::Repeat(_)),
    "the copy of x can be divided like the repetition"
);

/// `copy(copy(x)) = x` if the second copy returns to `x`'s place, otherwise `copy(copy(x)) = copy(x)`.
pub(super) const COPY_OF_COPY: RewriteRule = RewriteRule {
    name: "copy-of-copy",
    equation: "copy(copy(x)) = copy(x), or x itself",
    condition: "x itself, if x was at that place with the same division",
    apply: |egraph, eclass, node, equal| {
        let Some(to) = copy_to(egraph, node) else {
            return;
        };
        for from in sources(egraph, node.operands[0]) {
            let source = type_of(egraph, from).clone();
            if source == to {
                equal.push((eclass, from));
            } else if source.place != to.place {
                let id = copy(egraph, from, to.clone(), eclass);
                equal.push((eclass, id));
            }
        }
    },
};

fn copy_to(egraph: &EGraph, node: &Node) -> Option<ShardedType> {
    let Head::Op(op, out) = node.head else {
        return None;
    };
    let table = &egraph.analysis;
    matches!(table.op(op), Op::Copy(_)).then(|| table.ty(out).clone())
}

fn sources(egraph: &EGraph, eclass: Id) -> Vec<Id> {
    let mut out: Vec<Id> = (egraph[eclass].nodes.iter())
        .filter(|n| copy_to(egraph, n).is_some())
        .map(|n| egraph.find(n.operands[0]))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

fn copy(egraph: &mut EGraph, from: Id, to: ShardedType, eclass: Id) -> Id {
    let op = egraph.analysis.op_ref(&Copy.into());
    let head = Head::Op(op, egraph.analysis.types_ref(vec![to]));
    let operands = vec![from];
    let origin = egraph[eclass].data.origin;
    insert(egraph, Node { head, operands }, origin)
}

/// True if each device's part is a list of intervals of one axis, so it can be cut and joined.
fn moves(egraph: &EGraph, out: &ShardedType) -> bool {
    let mut split = out.sharding.axes.iter().flatten();
    let classes = &egraph.analysis.classes;
    let ranks = 0..egraph.analysis.ranks(out.place);
    match (split.next(), split.next()) {
        (None, _) => true,
        (Some(tree), None) => ranks
            .into_iter()
            .all(|r| tree.intervals(classes, r).is_some()),
        _ => false,
    }
}

/// Moves an op before the copy: `f(copy(x)) = copy(f(x))`.
fn move_copy_before(
    egraph: &mut EGraph,
    eclass: Id,
    node: &Node,
    equal: &mut EqualPairs,
    fits: fn(&Op) -> bool,
) {
    let Head::Op(op, out) = node.head else {
        return;
    };
    if !fits(egraph.analysis.op(op)) {
        return;
    }
    let to = egraph.analysis.ty(out).clone();
    for from in sources(egraph, node.operands[0]) {
        // The op runs at `x`'s place, on `x` as divided there.
        let there = ShardedType {
            place: type_of(egraph, from).place,
            ..to.clone()
        };
        let like = egraph.analysis.types_ref(vec![there]);
        let operands = vec![egraph[from].data.types];
        let Some(made) = egraph.analysis.derive(op, operands, like) else {
            continue;
        };
        if !moves(egraph, &to) || !moves(egraph, egraph.analysis.ty(made)) {
            continue;
        }
        let head = Head::Op(op, made);
        let operands = vec![from];
        let origin = egraph[eclass].data.origin;
        let id = insert(egraph, Node { head, operands }, origin);
        let copied = copy(egraph, id, to.clone(), eclass);
        equal.push((eclass, copied));
    }
}

/// Moves an op after the copy: `copy(f(x)) = f(copy(x))`.
fn move_copy_after(
    egraph: &mut EGraph,
    eclass: Id,
    node: &Node,
    equal: &mut EqualPairs,
    fits: fn(&Op) -> bool,
) {
    let Some(to) = copy_to(egraph, node) else {
        return;
    };
    for inner in egraph[node.operands[0]].nodes.clone() {
        let Head::Op(op, _) = inner.head else {
            continue;
        };
        if !fits(egraph.analysis.op(op)) {
            continue;
        }
        let x = inner.operands[0];
        let ty = type_of(egraph, x).ty.clone();
        let result = ShardedTensor {
            ty: &to.ty,
            sharding: &to.sharding,
        };
        let Some(sharding) = derive_operand(egraph.analysis.op(op), &ty, result) else {
            continue;
        };
        let place = to.place;
        let arrived = ShardedType {
            ty,
            place,
            sharding,
        };
        if !moves(egraph, &arrived) || !moves(egraph, type_of(egraph, x)) {
            continue;
        }
        let operands = vec![copy(egraph, x, arrived, eclass)];
        let head = Head::Op(op, egraph.analysis.types_ref(vec![to.clone()]));
        let origin = egraph[eclass].data.origin;
        let id = insert(egraph, Node { head, operands }, origin);
        equal.push((eclass, id));
    }
}
