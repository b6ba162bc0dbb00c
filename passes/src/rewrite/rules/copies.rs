//! Moving copies across views and slices.

use egg::Id;
use tpc_ir::Op;
use tpc_ir::op::{Copy, Sharded};
use tpc_ir::verify::derive_operand;

use super::{Equal, Rule};
use crate::rewrite::analysis::{Out, Terms, insert, out_of};
use crate::rewrite::language::{Head, Node};

/// `slice(copy(x)) = copy(slice(x))`: what is cut off does not cross.
pub(super) const SLICE_THEN_COPY: Rule = Rule {
    name: "slice-then-copy",
    equation: "slice(copy(x)) = copy(slice(x))",
    condition: "x is so divided that each device can slice its part",
    apply: |terms, class, node, equal| {
        before(terms, class, node, equal, |op| matches!(op, Op::Slice(_)));
    },
};

/// `view(copy(x)) = copy(view(x))`, so that a slice behind a view may come before the copy.
pub(super) const VIEW_THEN_COPY: Rule = Rule {
    name: "view-then-copy",
    equation: "view(copy(x)) = copy(view(x))",
    condition: "view reshapes or permutes, and x is so divided that each device can",
    apply: |terms, class, node, equal| before(terms, class, node, equal, Op::is_layout),
};

/// `copy(view(x)) = view(copy(x))`, so that several views of a value cross as one.
pub(super) const COPY_THEN_VIEW: Rule = Rule {
    name: "copy-then-view",
    equation: "copy(view(x)) = view(copy(x))",
    condition: "view reshapes or permutes, and the copy of x can be divided as that of its view",
    apply: |terms, class, node, equal| after(terms, class, node, equal, Op::is_layout),
};

/// `copy(repeat(x)) = repeat(copy(x))`: one of the equal rows crosses.
pub(super) const COPY_THEN_REPEAT: Rule = Rule {
    name: "copy-then-repeat",
    equation: "copy(repeat(x)) = repeat(copy(x))",
    condition: "the copy of x can be divided as that of the repetition",
    apply: |terms, class, node, equal| {
        after(terms, class, node, equal, |op| matches!(op, Op::Repeat(_)));
    },
};

/// `copy(copy(x)) = x` back where it came from, `copy(copy(x)) = copy(x)` elsewhere.
pub(super) const COPY_OF_COPY: Rule = Rule {
    name: "copy-of-copy",
    equation: "copy(copy(x)) = copy(x), or x itself",
    condition: "x itself where it came from there, divided alike",
    apply: |terms, class, node, equal| {
        let Some(to) = copy_to(terms, node) else {
            return;
        };
        for from in sources(terms, node.operands[0]) {
            let source = out_of(terms, from).clone();
            if source == to {
                equal.push((class, from));
            } else if source.place != to.place {
                let id = copy(terms, from, to.clone(), class);
                equal.push((class, id));
            }
        }
    },
};

/// What a copy gives.
fn copy_to(terms: &Terms, node: &Node) -> Option<Out> {
    let Head::Op(op, out) = node.head else {
        return None;
    };
    let table = &terms.analysis;
    matches!(table.op(op), Op::Copy(_)).then(|| table.out(out).clone())
}

/// What is copied to make a class.
fn sources(terms: &Terms, class: Id) -> Vec<Id> {
    let mut out: Vec<Id> = (terms[class].nodes.iter())
        .filter(|n| copy_to(terms, n).is_some())
        .map(|n| terms.find(n.operands[0]))
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// The copy of a class, to make what stands for `class`.
fn copy(terms: &mut Terms, from: Id, to: Out, class: Id) -> Id {
    let op = terms.analysis.op_ref(&Copy.into());
    let head = Head::Op(op, terms.analysis.out_ref(vec![to]));
    let operands = vec![from];
    let origin = terms[class].data.origin;
    insert(terms, Node { head, operands }, origin)
}

/// Whether what each device has of a value is known as runs of one axis, so that it can be cut and put together.
fn moves(terms: &Terms, out: &Out) -> bool {
    let mut split = out.sharding.axes.iter().flatten();
    let classes = &terms.analysis.classes;
    let ranks = 0..terms.analysis.ranks(out.place);
    match (split.next(), split.next()) {
        (None, _) => true,
        (Some(tree), None) => ranks
            .into_iter()
            .all(|r| tree.intervals(classes, r).is_some()),
        _ => false,
    }
}

/// `f(copy(x)) = copy(f(x))`.
fn before(terms: &mut Terms, class: Id, node: &Node, equal: &mut Equal, fits: fn(&Op) -> bool) {
    let Head::Op(op, out) = node.head else {
        return;
    };
    if !fits(terms.analysis.op(op)) {
        return;
    }
    let to = terms.analysis.out(out).clone();
    for from in sources(terms, node.operands[0]) {
        // The op runs where `x` is, on x as it is divided there.
        let there = Out {
            place: out_of(terms, from).place,
            ..to.clone()
        };
        let like = terms.analysis.out_ref(vec![there]);
        let operands = vec![terms[from].data.out];
        let Some(made) = terms.analysis.derive(op, operands, like) else {
            continue;
        };
        if !moves(terms, &to) || !moves(terms, terms.analysis.out(made)) {
            continue;
        }
        let head = Head::Op(op, made);
        let operands = vec![from];
        let origin = terms[class].data.origin;
        let id = insert(terms, Node { head, operands }, origin);
        let copied = copy(terms, id, to.clone(), class);
        equal.push((class, copied));
    }
}

/// `copy(f(x)) = f(copy(x))`.
fn after(terms: &mut Terms, class: Id, node: &Node, equal: &mut Equal, fits: fn(&Op) -> bool) {
    let Some(to) = copy_to(terms, node) else {
        return;
    };
    for inner in terms[node.operands[0]].nodes.clone() {
        let Head::Op(op, _) = inner.head else {
            continue;
        };
        if !fits(terms.analysis.op(op)) {
            continue;
        }
        let x = inner.operands[0];
        let ty = out_of(terms, x).ty.clone();
        let result = Sharded {
            ty: &to.ty,
            sharding: &to.sharding,
        };
        let Some(sharding) = derive_operand(terms.analysis.op(op), &ty, result) else {
            continue;
        };
        let place = to.place;
        let arrived = Out {
            ty,
            place,
            sharding,
        };
        if !moves(terms, &arrived) || !moves(terms, out_of(terms, x)) {
            continue;
        }
        let operands = vec![copy(terms, x, arrived, class)];
        let head = Head::Op(op, terms.analysis.out_ref(vec![to.clone()]));
        let origin = terms[class].data.origin;
        let id = insert(terms, Node { head, operands }, origin);
        equal.push((class, id));
    }
}
