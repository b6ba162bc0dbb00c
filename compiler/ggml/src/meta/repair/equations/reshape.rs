//! Reshapes, and the ops that commute with them.

use super::{Equation, Tree, facts, is_flat_from, is_rowwise, nodes};
use crate::meta::repair::analysis::Terms;
use crate::meta::repair::language::{Node, Op, Sizes4};
use crate::op::{Family, OpKind};

pub(super) const TWICE: Equation = Equation {
    name: "reshape-reshape",
    says: "reshape(reshape(x)) = reshape(x), or x if the sizes are x's",
    rewrite: twice,
};

pub(super) const BY_PARTS: Equation = Equation {
    name: "reshape-by-parts",
    says: "reshape(x) = reshape(reshape(x)), through the common sizes",
    rewrite: by_parts,
};

pub(super) const ELEMENTWISE: Equation = Equation {
    name: "reshape-elementwise",
    says: "f(reshape(x)) = reshape(f(x)) for an elementwise f",
    rewrite: elementwise,
};

pub(super) const BINARY: Equation = Equation {
    name: "reshape-binary",
    says: "reshape(x) + y = reshape(x + reshape(y)), or y itself if y has size 1 on all axes that differ",
    rewrite: binary,
};

pub(super) const ROWS: Equation = Equation {
    name: "reshape-rows",
    says: "norm(reshape(x)) = reshape(norm(x)) if rows stay rows",
    rewrite: rows,
};

pub(super) const PRODUCT: Equation = Equation {
    name: "reshape-product",
    says: "w · reshape(x) = reshape(w · x) if rows stay rows and w is a matrix",
    rewrite: product,
};

pub(super) const VIEW: Equation = Equation {
    name: "reshape-view",
    says: "view(reshape(x)) = view(x)",
    rewrite: view,
};

/// Returns the classes that reshape to this class, with their sizes.
fn reshape_sources<'t>(
    terms: &'t Terms,
    id: egg::Id,
) -> impl Iterator<Item = (egg::Id, Sizes4)> + 't {
    nodes(terms, id).filter_map(move |n| match n.op {
        Op::Reshape(_) | Op::Cont(_) if n.children[0] != id => {
            Some((n.children[0], facts(terms, n.children[0]).ne))
        }
        _ => None,
    })
}

fn twice(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::Reshape(ne) = node.op else { return };
    let x = node.children[0];
    if facts(terms, x).ne == ne {
        out.push(Tree::Class(x));
    }
    for (inner, from) in reshape_sources(terms, x) {
        out.push(Tree::Class(inner).reshape_term(from, ne));
    }
}

/// Returns sizes that merge into both `a` and `b`, split at every boundary of either; `None` if the boundaries do not
/// divide each other. Beyond four parts, the outermost are merged.
fn common(a: Sizes4, b: Sizes4) -> Option<Sizes4> {
    let mut cuts: Vec<u64> = Vec::new();
    for ne in [a, b] {
        let mut product = 1;
        for n in ne {
            product *= n;
            cuts.push(product);
        }
    }
    cuts.sort_unstable();
    cuts.dedup();
    let mut out = [1; 4];
    let mut below = 1;
    for (i, cut) in cuts.into_iter().filter(|&c| c > 1).enumerate() {
        if !cut.is_multiple_of(below) {
            return None;
        }
        out[i.min(3)] *= cut / below;
        below = cut;
    }
    Some(out)
}

fn by_parts(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::Reshape(ne) = node.op else { return };
    let x = node.children[0];
    let from = facts(terms, x).ne;
    if let Some(parts) = common(from, ne)
        && parts != from
        && parts != ne
    {
        let inner = Tree::one(Op::Reshape(parts), Tree::Class(x));
        out.push(Tree::one(Op::Reshape(ne), inner));
    }
}

fn elementwise(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    if c.op.family() != Family::Elementwise {
        return;
    }
    for (x, from) in reshape_sources(terms, node.children[0]) {
        let inner = Tree::one(Op::Compute(c.with_sizes(from)), Tree::Class(x));
        out.push(inner.reshape_term(from, c.ne));
    }
}

fn binary(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    if c.op.family() != Family::Binary {
        return;
    }
    let y = node.children[1];
    let (y_ne, dtype) = (facts(terms, y).ne, facts(terms, y).dtype);
    if dtype.block_len() > 1 {
        return;
    }
    for (x, from) in reshape_sources(terms, node.children[0]) {
        let same = (0..4).take_while(|&i| from[i] == c.ne[i]).count();
        let y = if y_ne == c.ne {
            Tree::Class(y).reshape_term(y_ne, from)
        } else if is_flat_from(y_ne, same) {
            Tree::Class(y)
        } else {
            continue;
        };
        let inner = Tree::term(Op::Compute(c.with_sizes(from)), vec![Tree::Class(x), y]);
        out.push(inner.reshape_term(from, c.ne));
    }
}

fn rows(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    if !is_rowwise(&c.op) || node.children.len() != 1 {
        return;
    }
    for (x, from) in reshape_sources(terms, node.children[0]) {
        if from[0] == c.ne[0] {
            let inner = Tree::one(Op::Compute(c.with_sizes(from)), Tree::Class(x));
            out.push(inner.reshape_term(from, c.ne));
        }
    }
}

fn product(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    if !c.op.is(OpKind::MulMat) || !is_flat_from(facts(terms, node.children[0]).ne, 2) {
        return;
    }
    let k = facts(terms, node.children[1]).ne[0];
    for (x, from) in reshape_sources(terms, node.children[1]) {
        if from[0] == k {
            let ne = [c.ne[0], from[1], from[2], from[3]];
            let w = Tree::Class(node.children[0]);
            let inner = Tree::term(Op::Compute(c.with_sizes(ne)), vec![w, Tree::Class(x)]);
            out.push(inner.reshape_term(ne, c.ne));
        }
    }
}

fn view(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::View { .. } = node.op else { return };
    for (x, _) in reshape_sources(terms, node.children[0]) {
        out.push(Tree::one(node.op.clone(), Tree::Class(x)));
    }
}

#[cfg(test)]
mod tests {
    use super::common;

    #[test]
    fn common_parts() {
        let heads = common([512, 8, 1, 1], [128, 32, 1, 1]);
        assert_eq!(heads, Some([128, 4, 8, 1]));
        assert_eq!(common([6, 4, 1, 1], [4, 6, 1, 1]), None);
        let five = common([32, 3, 2, 2], [8, 12, 2, 2]);
        assert_eq!(five, Some([8, 4, 3, 4]));
        assert_eq!(common([8, 3, 1, 1], [1, 8, 3, 1]), Some([8, 3, 1, 1]));
    }
}
