//! Operands that need not be as large as they are made.

use tpc_ir::DType;

use super::{Equation, Tree, facts, is_binary, of};
use crate::meta::repair::analysis::Terms;
use crate::meta::repair::language::{Compute, Node, Op};

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
    let Some(c) = node.compute().filter(|c| is_binary(&c.op)) else {
        return;
    };
    for n in of(terms, node.children[1]) {
        if n.compute().is_some_and(|r| r.op == "REPEAT") {
            let children = vec![Tree::Is(node.children[0]), Tree::Is(n.children[0])];
            out.push(Tree::Term(Op::Compute(c.clone()), children));
        }
    }
}

fn mask(terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
    let Some(c) = node.compute().filter(|c| c.op == "SOFT_MAX") else {
        return;
    };
    let &[x, mask] = node.children.as_slice() else {
        return;
    };
    let m = facts(terms, mask);
    let ne = facts(terms, x).ne;
    // The sum repeats the mask as the op does, but has no slopes and drops no rows.
    let repeats = (0..4).all(|i| ne[i].is_multiple_of(m.ne[i].max(1)));
    if c.float(1) != 0.0 || m.dtype != DType::F32 || m.ne[..2] != ne[..2] || !repeats {
        return;
    }
    let of = |op: &str, params: Vec<i32>, sources: usize| {
        Op::Compute(Compute {
            op: op.to_owned(),
            params,
            ne,
            dtype: c.dtype,
            present: vec![true; sources],
        })
    };
    let one = 1.0_f32.to_bits().cast_signed();
    let scaled = match c.float(0) {
        1.0 => Tree::Is(x),
        scale => Tree::one(
            of("SCALE", vec![scale.to_bits().cast_signed()], 1),
            Tree::Is(x),
        ),
    };
    let sum = Tree::Term(of("ADD", Vec::new(), 2), vec![scaled, Tree::Is(mask)]);
    out.push(Tree::one(of("SOFT_MAX", vec![one], 1), sum));
}
