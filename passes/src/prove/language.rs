//! The language of the proof's e-graph.

use egg::{Id, Language};
use smallvec::SmallVec;
use tpc_ir::{Dim, Interval, RANK, TensorType};

use super::index_set::IndexSet;

/// The head of a term: the function that is applied to its arguments. Ops, views and types are numbers of the interners
/// (`interner.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// A value that the proof does not analyse: a leaf of the model, or a value of an earlier section.
    Atom {
        /// The number of the value.
        number: u32,
        /// The number of its type.
        ty: u32,
    },
    /// A result of an op.
    Op {
        /// The number of the op.
        op: u32,
        /// The index of the result.
        result: u8,
    },
    /// A [`View`] of the argument, by number.
    View(u32),
    /// The sum of the arguments, all of one shape, in the order of their e-classes' ages.
    Sum,
    /// Zeros of a type, by number.
    Zero(u32),
    /// The first argument, with zeros in all rows except the rows whose index the mask contains. The second argument
    /// has the indices; its axis `a` belongs to axis `a + 1` of the first.
    Mask(Mask),
}

/// The rows or experts of a tensor that a device computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mask {
    /// The rows or experts.
    pub(super) rows: Interval,
    /// The number of all rows or experts.
    pub(super) total: u64,
}

/// Elements of a tensor under given sizes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    /// The elements.
    pub(super) indices: IndexSet,
    /// The sizes of the view.
    pub(super) dims: [Dim; RANK],
}

/// The arguments of a term: few, except for sums and concatenations.
pub(super) type Args = SmallVec<[Id; 4]>;

/// A head and its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Term {
    pub(super) head: Head,
    pub(super) args: Args,
}

impl Language for Term {
    type Discriminant = Head;

    fn discriminant(&self) -> Head {
        self.head
    }

    fn matches(&self, other: &Self) -> bool {
        self.head == other.head && self.args.len() == other.args.len()
    }

    fn children(&self) -> &[Id] {
        &self.args
    }

    fn children_mut(&mut self) -> &mut [Id] {
        &mut self.args
    }
}

/// True if a tensor has 0 elements.
pub(super) fn is_empty(ty: &TensorType) -> bool {
    ty.dims.iter().any(Dim::is_zero)
}
