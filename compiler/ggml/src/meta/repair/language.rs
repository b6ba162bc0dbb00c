//! Terms: ggml ops on values. Extraction chooses the memory of a value.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use egg::{Id, Language};
use tpc_ir::{DType, RANK};

use crate::op::GgmlOp;

pub(super) type Sizes4 = [u64; RANK];

#[derive(Clone, Debug)]
pub(super) struct Compute {
    pub(super) op: GgmlOp,
    pub(super) words: Vec<i32>,
    pub(super) ne: Sizes4,
    pub(super) dtype: DType,
    /// True for each present source. Only present sources are children.
    pub(super) present: Vec<bool>,
}

impl Compute {
    pub(super) fn with_sizes(&self, ne: Sizes4) -> Compute {
        Compute { ne, ..self.clone() }
    }

    /// Returns the distinguishing fields. The words determine the parameters.
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Op {
    /// A record outside the window; `version` counts the writes to its memory.
    Leaf { record: usize, version: u32 },
    /// The same elements with other sizes. The child is packed.
    Reshape(Sizes4),
    /// The result axis of each axis.
    Permute([usize; RANK]),
    /// A range of one axis.
    Slice { axis: usize, start: u64, len: u64 },
    /// Packed memory with other strides.
    View { ne: Sizes4, nb: Sizes4, offset: u64 },
    /// A packed copy with these sizes.
    Cont(Sizes4),
    /// A computation.
    Compute(Compute),
    /// A record that writes to its last child's memory.
    Effect { record: usize, compute: Compute },
}

/// A term: an op on classes of equal terms.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Node {
    pub(super) op: Op,
    pub(super) children: Vec<Id>,
}

impl Node {
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
