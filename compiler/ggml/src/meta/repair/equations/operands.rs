//! Ops that can repeat or add an operand, which makes a separate op redundant.

use tpc_ir::DType;

use super::{Equation, Tree, facts, nodes};
use crate::meta::repair::analysis::Terms;
use crate::meta::repair::language::{Compute, Node, Op};
use crate::op::{Family, GgmlOp, OpKind};

pub(super) const REPEATED: Equation = Equation {
    name: "repeat-operand",
    says: "x + repeat(y) = x + y: the op repeats its second operand itself",
    rewrite: repeated,
};

pub(super) const MASK: Equation = Equation {
    name: "softmax-mask",
    says: "soft_max(x · scale + mask) = soft_max of the sum",
    rewrite: mask,
};

fn repeated(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute().filter(|c| c.op.family() == Family::Binary) else {
        return;
    };
    for n in nodes(terms, node.children[1]) {
        if n.compute().is_some_and(|r| r.op.is(OpKind::Repeat)) {
            let children = vec![Tree::Class(node.children[0]), Tree::Class(n.children[0])];
            out.push(Tree::term(Op::Compute(c.clone()), children));
        }
    }
}

fn mask(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute() else { return };
    let GgmlOp::SoftMax(p) = &c.op else { return };
    let &[x, mask] = node.children.as_slice() else {
        return;
    };
    let m = facts(terms, mask);
    let ne = facts(terms, x).ne;
    // The sum repeats the mask like the op, but without slopes and with all rows.
    let repeats = (0..4).all(|i| ne[i].is_multiple_of(m.ne[i].max(1)));
    if p.max_bias != 0.0 || m.dtype != DType::F32 || m.ne[..2] != ne[..2] || !repeats {
        return;
    }
    let of = |op: OpKind, words: Vec<i32>, sources: usize| {
        Op::Compute(Compute {
            op: GgmlOp::parse(op.name(), &words),
            words,
            ne,
            dtype: c.dtype,
            present: vec![true; sources],
        })
    };
    let one = 1.0_f32.to_bits().cast_signed();
    let scaled = match p.scale {
        1.0 => Tree::Class(x),
        scale => Tree::one(
            of(OpKind::Scale, vec![scale.to_bits().cast_signed()], 1),
            Tree::Class(x),
        ),
    };
    let sum = Tree::term(
        of(OpKind::Add, Vec::new(), 2),
        vec![scaled, Tree::Class(mask)],
    );
    out.push(Tree::one(of(OpKind::SoftMax, vec![one], 1), sum));
}
