use super::{Equation, Tree, facts, is_flat_from, is_rowwise, nodes};
use crate::meta::repair::analysis::Terms;
use crate::meta::repair::language::{Node, Op};
use crate::op::{Family, OpKind};

pub(super) const TWICE: Equation = Equation {
    name: "permute-permute",
    says: "permute(permute(x)) = permute(x), or x if every axis is back in place",
    rewrite: twice,
};

pub(super) const THROUGH: Equation = Equation {
    name: "permute-through",
    says: "f(permute(x)) = permute(f(x)) for an elementwise f, and for norms and matrix products if rows stay rows",
    rewrite: through,
};

pub(super) const SPLIT: Equation = Equation {
    name: "permute-split",
    says: "reshape(permute(x)) = permute(reshape(x)) if the reshape only splits axes",
    rewrite: split,
};

pub(super) const COPY: Equation = Equation {
    name: "copy",
    says: "cont(x) = x for a view x",
    rewrite: copy,
};

const SAME: [usize; 4] = [0, 1, 2, 3];

fn twice(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::Permute(outer) = node.op else { return };
    let x = node.children[0];
    if outer == SAME {
        out.push(Tree::Class(x));
    }
    for n in nodes(terms, x) {
        if let Op::Permute(inner) = n.op {
            let both = inner.map(|a| outer[a]);
            let y = Tree::Class(n.children[0]);
            out.push(if both == SAME {
                y
            } else {
                Tree::one(Op::Permute(both), y)
            });
        }
    }
}

fn through(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    let Some(&x) = node.children.last() else {
        return;
    };
    let by_number = c.op.family() == Family::Elementwise;
    let by_row = is_rowwise(&c.op) && node.children.len() == 1;
    let matrix = c.op.is(OpKind::MulMat) && is_flat_from(facts(terms, node.children[0]).ne, 2);
    if !(by_number || by_row || matrix) {
        return;
    }
    for n in nodes(terms, x) {
        let Op::Permute(axes) = n.op else { continue };
        if !by_number && axes[0] != 0 {
            continue;
        }
        let ne = axes.map(|to| c.ne[to]);
        let mut children: Vec<Tree> = node.children.iter().map(|&id| Tree::Class(id)).collect();
        children.pop();
        children.push(Tree::Class(n.children[0]));
        let inner = Tree::term(Op::Compute(c.with_sizes(ne)), children);
        out.push(Tree::one(Op::Permute(axes), inner));
    }
}

/// Groups `parts` by the axis of `ne` that they form. Returns `None` if a part spans two axes.
fn by_axis(ne: [u64; 4], parts: [u64; 4]) -> Option<[Vec<u64>; 4]> {
    let mut out: [Vec<u64>; 4] = Default::default();
    let mut parts = parts.into_iter().filter(|&n| n > 1);
    for (axis, n) in ne.into_iter().enumerate() {
        let mut product = 1;
        while product < n {
            let next = parts.next()?;
            product *= next;
            out[axis].push(next);
        }
        if product != n {
            return None;
        }
    }
    Some(out)
}

fn split(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::Reshape(ne) = node.op else { return };
    // The order of axes of size 1 is ambiguous.
    let rank = ne.iter().filter(|&&n| n > 1).count();
    if ne[..rank].contains(&1) {
        return;
    }
    let Some(parts) = by_axis(facts(terms, node.children[0]).ne, ne) else {
        return;
    };
    for n in nodes(terms, node.children[0]) {
        let Op::Permute(axes) = n.op else { continue };
        let mut before = [1; 4];
        let mut moved = SAME;
        let mut at = 0;
        for to in axes {
            let first: usize = parts[..to].iter().map(Vec::len).sum();
            for (k, &size) in parts[to].iter().enumerate() {
                before[at] = size;
                moved[at] = first + k;
                at += 1;
            }
        }
        let inner = Tree::one(Op::Reshape(before), Tree::Class(n.children[0]));
        out.push(Tree::one(Op::Permute(moved), inner));
    }
}

fn copy(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    if matches!(node.op, Op::Permute(_) | Op::Slice { .. } | Op::View { .. })
        && let Some(id) = terms.lookup(node.clone())
    {
        out.push(Tree::one(Op::Cont(facts(terms, id).ne), Tree::Class(id)));
    }
}
