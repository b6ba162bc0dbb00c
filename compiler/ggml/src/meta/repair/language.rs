//! Terms: ops of ggml on whole tensors, by value. Where memory is, and who shares it, is decided when a term is chosen.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use egg::{Id, Language};
use tpc_ir::{DType, RANK};

use crate::op::GgmlOp;

/// Sizes or strides.
pub(super) type Four = [u64; RANK];

/// An op that computes.
#[derive(Clone, Debug)]
pub(super) struct Compute {
    /// The op.
    pub(super) op: GgmlOp,
    /// The words of its parameters.
    pub(super) words: Vec<i32>,
    /// Sizes of the result.
    pub(super) ne: Four,
    /// Element type of the result.
    pub(super) dtype: DType,
    /// Which of ggml's sources there are; the children are these.
    pub(super) present: Vec<bool>,
}

impl Compute {
    /// The same op of as many sources, all there, with another result.
    pub(super) fn of(&self, ne: Four) -> Compute {
        Compute { ne, ..self.clone() }
    }

    /// The fields that tell two apart. The op's parameters follow from the words.
    fn key(&self) -> (&str, &[i32], Four, DType, &[bool]) {
        let (words, present) = (self.words.as_slice(), self.present.as_slice());
        (self.op.name(), words, self.ne, self.dtype, present)
    }
}

impl PartialEq for Compute {
    fn eq(&self, other: &Compute) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Compute {}

impl PartialOrd for Compute {
    fn partial_cmp(&self, other: &Compute) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Compute {
    fn cmp(&self, other: &Compute) -> Ordering {
        self.key().cmp(&other.key())
    }
}

impl Hash for Compute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// What a term does with its children.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Op {
    /// A record from outside, in the state after so many writes to its memory.
    Leaf { record: usize, version: u32 },
    /// The same elements in the same order under other sizes. Its child is packed.
    Reshape(Four),
    /// Where each axis goes.
    Permute([usize; RANK]),
    /// A range of one axis.
    Slice { axis: usize, start: u64, len: u64 },
    /// Other strides over packed memory.
    View { ne: Four, nb: Four, offset: u64 },
    /// A packed copy under these sizes.
    Cont(Four),
    /// Something computed.
    Compute(Compute),
    /// A record that writes to memory of its last child.
    Effect { record: usize, compute: Compute },
}

/// A term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) children: Vec<Id>,
}

impl Node {
    /// The op, when it computes something.
    pub(super) fn compute(&self) -> Option<&Compute> {
        match &self.op {
            Op::Compute(c) => Some(c),
            _ => None,
        }
    }
}

impl Language for Node {
    type Discriminant = Op;

    fn discriminant(&self) -> Op {
        self.op.clone()
    }

    fn matches(&self, other: &Node) -> bool {
        self.op == other.op && self.children.len() == other.children.len()
    }

    fn children(&self) -> &[Id] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.children
    }
}
