//! Terms: ops of ggml on values. The memory of a value is decided when a term is chosen.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use egg::{Id, Language};
use tpc_ir::{DType, RANK};

use crate::op::GgmlOp;

/// Sizes or strides.
pub(super) type Sizes4 = [u64; RANK];

/// An op of ggml on its sources.
#[derive(Clone, Debug)]
pub(super) struct Compute {
    /// The op.
    pub(super) op: GgmlOp,
    /// The words of its parameters.
    pub(super) words: Vec<i32>,
    /// Sizes of the result.
    pub(super) ne: Sizes4,
    /// Element type of the result.
    pub(super) dtype: DType,
    /// Per source of ggml, true if it is present. Only present sources are children.
    pub(super) present: Vec<bool>,
}

impl Compute {
    /// Returns the same op on the same sources, with a result of other sizes.
    pub(super) fn with_sizes(&self, ne: Sizes4) -> Compute {
        Compute { ne, ..self.clone() }
    }

    /// Returns the fields that tell two apart. The op's parameters follow from the words.
    fn key(&self) -> (&str, &[i32], Sizes4, DType, &[bool]) {
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

/// The op of a term.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Op {
    /// A record outside of the window, after a number of writes to its memory.
    Leaf { record: usize, version: u32 },
    /// The same elements in the same order under other sizes. The child is packed.
    Reshape(Sizes4),
    /// The axis of the result that each axis becomes.
    Permute([usize; RANK]),
    /// A range of one axis.
    Slice { axis: usize, start: u64, len: u64 },
    /// Other strides over packed memory.
    View { ne: Sizes4, nb: Sizes4, offset: u64 },
    /// A packed copy under these sizes.
    Cont(Sizes4),
    /// An op that computes a value.
    Compute(Compute),
    /// A record that writes to the memory of its last child.
    Effect { record: usize, compute: Compute },
}

/// A term: an op on classes of equal terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) children: Vec<Id>,
}

impl Node {
    /// Returns the computation of a term, or `None` for a term without one.
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
