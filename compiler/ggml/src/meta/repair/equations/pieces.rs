use super::{Equation, Tree, facts, is_rowwise, nodes};
use crate::meta::repair::analysis::Terms;
use crate::meta::repair::language::{Compute, Node, Op, Sizes4};
use crate::op::{Family, OpKind};

pub(super) const NEIGHBOURS: Equation = Equation {
    name: "concat-slices",
    says: "concat(range, next range) = the range of both",
    rewrite: neighbours,
};

pub(super) const ALIKE: Equation = Equation {
    name: "concat-alike",
    says: "concat(f(a), f(b)) = f(concat(a, b)) for an elementwise f; also norms, rotations and products with one matrix, \
           along axes that they keep apart",
    rewrite: alike,
};

pub(super) const PIECE: Equation = Equation {
    name: "slice-concat",
    says: "the first or second part of concat(a, b) = a or b",
    rewrite: piece,
};

pub(super) const GATE: Equation = Equation {
    name: "gate-concat",
    says: "glu(concat(a, b)) = glu(a, b) for halves a and b",
    rewrite: gate,
};

/// Returns the axis of a concatenation of two parts, and the concatenation.
fn parts(terms: &Terms, node: &Node) -> Option<(usize, Compute)> {
    let c = node.compute().filter(|c| c.op.is(OpKind::Concat))?;
    let a = facts(terms, *node.children.first()?).ne;
    let axis = (0..4).find(|&i| a[i] != c.ne[i])?;
    (node.children.len() == 2).then(|| (axis, c.clone()))
}

/// Returns the slices along an axis that equal the class: (source, start, length).
fn ranges(terms: &Terms, id: egg::Id, along: usize) -> Vec<(egg::Id, u64, u64)> {
    nodes(terms, id)
        .filter_map(|n| match n.op {
            Op::Slice { axis, start, len } if axis == along => Some((n.children[0], start, len)),
            _ => None,
        })
        .collect()
}

fn neighbours(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some((axis, _)) = parts(terms, node) else {
        return;
    };
    let second = ranges(terms, node.children[1], axis);
    for (x, start, len) in ranges(terms, node.children[0], axis) {
        for &(y, next, more) in &second {
            if terms.find(x) != terms.find(y) || next != start + len {
                continue;
            }
            let whole = len + more == facts(terms, x).ne[axis];
            let len = len + more;
            out.push(if whole {
                Tree::Class(x)
            } else {
                Tree::one(Op::Slice { axis, start, len }, Tree::Class(x))
            });
        }
    }
}

fn with(mut ne: Sizes4, axis: usize, n: u64) -> Sizes4 {
    ne[axis] = n;
    ne
}

fn alike(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some((axis, concat)) = parts(terms, node) else {
        return;
    };
    for a in nodes(terms, node.children[0]) {
        let Some(f) = a.compute() else { continue };
        let i = usize::from(f.op.is(OpKind::MulMat));
        let apart = match f.op.kind() {
            Some(op) if op.family() == Family::Elementwise => true,
            Some(_) if is_rowwise(&f.op) => axis > 0 && a.children.len() == 1,
            Some(OpKind::MulMat) => {
                axis == 1 && super::is_flat_from(facts(terms, a.children[0]).ne, 2)
            }
            // Positions belong to axis 2.
            Some(OpKind::Rope) => axis == 1,
            _ => false,
        };
        if !apart {
            continue;
        }
        for b in nodes(terms, node.children[1]) {
            let Some(g) = b.compute() else { continue };
            let others = (0..a.children.len()).filter(|&k| k != i);
            let same = f.with_sizes(concat.ne) == g.with_sizes(concat.ne)
                && a.children.len() == b.children.len()
                && others
                    .clone()
                    .all(|k| terms.find(a.children[k]) == terms.find(b.children[k]));
            if !same {
                continue;
            }
            let (x, y) = (a.children[i], b.children[i]);
            let n = facts(terms, x).ne[axis] + facts(terms, y).ne[axis];
            let joined = concat.with_sizes(with(facts(terms, x).ne, axis, n));
            let joined = Tree::term(Op::Compute(joined), vec![Tree::Class(x), Tree::Class(y)]);
            let mut children: Vec<Tree> = a.children.iter().map(|&id| Tree::Class(id)).collect();
            children[i] = joined;
            out.push(Tree::term(Op::Compute(f.with_sizes(concat.ne)), children));
        }
    }
}

fn piece(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Op::Slice { axis, start, len } = node.op else {
        return;
    };
    for n in nodes(terms, node.children[0]) {
        let Some((along, _)) = parts(terms, n) else {
            continue;
        };
        let (a, b) = (n.children[0], n.children[1]);
        let first = facts(terms, a).ne[axis];
        if along != axis {
            continue;
        }
        if (start, len) == (0, first) {
            out.push(Tree::Class(a));
        }
        if (start, len) == (first, facts(terms, b).ne[axis]) {
            out.push(Tree::Class(b));
        }
    }
}

fn gate(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    let is_plain = c.op.glu().is_some_and(|p| !p.swapped);
    if !is_plain || node.children.len() != 1 {
        return;
    }
    for n in nodes(terms, node.children[0]) {
        let Some((0, _)) = parts(terms, n) else {
            continue;
        };
        if facts(terms, n.children[0]).ne == c.ne && facts(terms, n.children[1]).ne == c.ne {
            let two = Compute {
                present: vec![true, true],
                ..c.clone()
            };
            let children = n.children.iter().map(|&id| Tree::Class(id)).collect();
            out.push(Tree::term(Op::Compute(two), children));
        }
    }
}
