//! Equations of ggml's ops. Each is a constant and a line in [`EQUATIONS`].

mod operands;
mod permute;
mod pieces;
mod reshape;

use egg::Id;

use super::analysis::{Facts, Terms};
use super::language::{Node, Op, Sizes4};
use crate::op::{Family, GgmlOp, OpKind};

#[derive(Clone, Debug)]
pub(super) enum Tree {
    Class(Id),
    Term(Box<Op>, Vec<Tree>),
}

impl Tree {
    pub(super) fn term(op: Op, children: Vec<Tree>) -> Tree {
        Tree::Term(Box::new(op), children)
    }

    fn one(op: Op, of: Tree) -> Tree {
        Tree::term(op, vec![of])
    }

    /// Returns the term reshaped from `from` to `ne`, or the term itself if the sizes are equal.
    fn reshape_term(self, from: Sizes4, ne: Sizes4) -> Tree {
        if from == ne {
            self
        } else {
            Tree::one(Op::Reshape(ne), self)
        }
    }

    pub(super) fn add(&self, terms: &mut Terms) -> Id {
        match self {
            Tree::Class(id) => terms.find(*id),
            Tree::Term(op, children) => {
                let children = children.iter().map(|c| c.add(terms)).collect();
                let op = Op::clone(op);
                terms.add(Node { op, children })
            }
        }
    }
}

/// An equation.
pub struct Equation {
    /// The name.
    pub name: &'static str,
    /// Both sides of the equation, in words.
    pub says: &'static str,
    rewrite: fn(&Terms, &Node, &mut Vec<Tree>),
}

impl Equation {
    pub(super) fn rewrite(&self, terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
        (self.rewrite)(terms, node, out);
    }
}

/// All equations, in the order of application.
pub const EQUATIONS: &[&Equation] = &[
    &reshape::TWICE,
    &reshape::BY_PARTS,
    &reshape::ELEMENTWISE,
    &reshape::BINARY,
    &reshape::ROWS,
    &reshape::PRODUCT,
    &reshape::VIEW,
    &permute::TWICE,
    &permute::THROUGH,
    &permute::SPLIT,
    &permute::COPY,
    &pieces::NEIGHBOURS,
    &pieces::ALIKE,
    &pieces::PIECE,
    &pieces::GATE,
    &operands::REPEATED,
    &operands::MASK,
];

/// True if the op maps each row (axis 0) to a row of the same length.
fn is_rowwise(op: &GgmlOp) -> bool {
    op.family() == Family::Norm || op.is(OpKind::SoftMax)
}

fn facts(terms: &Terms, id: Id) -> &Facts {
    &terms[id].data
}

fn nodes(terms: &Terms, id: Id) -> impl Iterator<Item = &Node> {
    terms[id].nodes.iter()
}

fn is_flat_from(ne: Sizes4, axis: usize) -> bool {
    ne[axis..].iter().all(|&n| n == 1)
}
