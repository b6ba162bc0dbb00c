use egg::{Id, Language};
use smallvec::SmallVec;
use tpc_ir::{Dim, Interval, RANK, TensorType};

use super::index_set::IndexSet;

/// The function of a term. Ops, views and types are interned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Head {
    /// An opaque value: a leaf of the model, or a value of an earlier section.
    Atom {
        number: u32,
        ty: u32,
    },
    Op {
        op: u32,
        result: u8,
    },
    View(u32),
    /// A sum of arguments of one shape, ordered by the age of their e-classes.
    Sum,
    Zero(u32),
    /// The first argument with zeros in rows whose index is outside the mask. The second argument has the indices; its
    /// axis `a` belongs to axis `a + 1` of the first.
    Mask(Mask),
}

/// The rows or experts that a device computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Mask {
    pub(super) rows: Interval,
    pub(super) total: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct View {
    pub(super) indices: IndexSet,
    pub(super) dims: [Dim; RANK],
}

/// The arguments of a term: few, except in sums and concatenations.
pub(super) type Args = SmallVec<[Id; 4]>;

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

pub(super) fn is_empty(ty: &TensorType) -> bool {
    ty.dims.iter().any(Dim::is_zero)
}
