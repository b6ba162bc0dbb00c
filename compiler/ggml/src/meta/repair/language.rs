//! Terms: ops of ggml on whole tensors, by value. Where memory is, and who shares it, is decided when a term is chosen.

use egg::{Id, Language};
use tpc_ir::{DType, RANK};

/// Sizes or strides.
pub(super) type Four = [u64; RANK];

/// An op that computes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Compute {
    /// ggml's name.
    pub(super) op: String,
    /// ggml's `op_params`.
    pub(super) params: Vec<i32>,
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

    /// A parameter as a number.
    pub(super) fn float(&self, i: usize) -> f32 {
        f32::from_bits(self.params.get(i).copied().unwrap_or(0).cast_unsigned())
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
    /// The op that computes, where it is one of this name.
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
