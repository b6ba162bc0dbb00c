//! What is equal: laws of ggml's ops on tensors of any contents. A rule is one constant and a line in [`EQUATIONS`].

mod operands;
mod permute;
mod pieces;
mod reshape;

use egg::Id;

use super::analysis::{Facts, Terms};
use super::language::{Four, Node, Op};
use crate::op::{Family, GgmlOp, OpKind};

/// A term that a rule makes of classes that are there.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    Is(Id),
    Term(Op, Vec<Tree>),
}

impl Tree {
    fn one(op: Op, of: Tree) -> Tree {
        Tree::Term(op, vec![of])
    }

    /// Under these sizes; nothing where it has them.
    fn reshaped(self, from: Four, ne: Four) -> Tree {
        if from == ne {
            self
        } else {
            Tree::one(Op::Reshape(ne), self)
        }
    }

    /// Adds it.
    pub(super) fn add(&self, terms: &mut Terms) -> Id {
        match self {
            Tree::Is(id) => terms.find(*id),
            Tree::Term(op, children) => {
                let children = children.iter().map(|c| c.add(terms)).collect();
                let op = op.clone();
                terms.add(Node { op, children })
            }
        }
    }
}

/// A law.
pub struct Equation {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub says: &'static str,
    /// Trees that are equal to a term.
    rewrite: fn(&Terms, &Node, &mut Vec<Tree>),
}

impl Equation {
    /// Trees that are equal to a term.
    pub(super) fn rewrite(&self, terms: &Terms, node: &Node, out: &mut Vec<Tree>) {
        (self.rewrite)(terms, node, out);
    }
}

/// Every law.
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

/// Whether the op is a function of each row (axis 0) that keeps its length.
fn is_rowwise(op: &GgmlOp) -> bool {
    op.family() == Family::Norm || op.is(OpKind::SoftMax)
}

fn facts(terms: &Terms, id: Id) -> &Facts {
    &terms[id].data
}

/// The terms of a class.
fn of(terms: &Terms, id: Id) -> impl Iterator<Item = &Node> {
    terms[id].nodes.iter()
}

/// Sizes of 1 from the axis on.
fn is_flat_from(ne: Four, axis: usize) -> bool {
    ne[axis..].iter().all(|&n| n == 1)
}
