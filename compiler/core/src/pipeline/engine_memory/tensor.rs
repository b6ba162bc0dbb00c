//! The tensors of an engine's graph, as its allocator sees them.

use tpc_ir::{DType, RANK};

/// A tensor's position in its graph.
pub(super) type Id = usize;

/// The kind of a tensor's computation, if it affects memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A weight or a cache, which has a buffer of its own.
    Stored,
    /// An input of the graph.
    Input,
    /// An op that may write its result over an operand of the same layout.
    InPlace,
    /// An op that computes from rows of a table.
    Rows,
    /// Any other op.
    Plain,
    /// A view of another tensor, which is not an op.
    View,
    /// An op that writes into another tensor.
    Write,
    /// A copy of a tensor for another device.
    Copy,
    /// A reader of a copied tensor, which extends the tensor's life.
    Held,
}

/// An element type and sizes.
pub(super) type Layout = (DType, [u64; RANK]);

/// A tensor.
#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) layout: Layout,
    /// True if the elements are contiguous.
    pub(super) contiguous: bool,
    pub(super) sources: Vec<Id>,
    /// The tensor that has the memory of a view, or is written.
    pub(super) root: Option<Id>,
    /// True if its memory is never released, since the program reads it.
    pub(super) is_output: bool,
    /// True if it is a weight of the file.
    pub(super) is_weight: bool,
    /// The source that is a weight and determines the op's place.
    pub(super) weight: Option<Id>,
    /// Rows of the batch that the op computes.
    pub(super) rows: u64,
    /// The back end: a device's position, or the number of devices for the host.
    pub(super) place: Option<usize>,
}

impl Tensor {
    pub(super) fn new(kind: Kind, layout: Layout, bytes: u64) -> Tensor {
        Tensor {
            kind,
            bytes,
            layout,
            contiguous: true,
            sources: Vec::new(),
            root: None,
            is_output: false,
            is_weight: false,
            weight: None,
            rows: layout.1[1..].iter().product(),
            place: None,
        }
    }

    /// Checks that the tensor has memory outside of the graph's buffers.
    pub(super) fn is_stored(&self) -> bool {
        self.kind == Kind::Stored
    }
}

/// Computes the bytes of elements of this type.
pub(super) fn bytes_of((dtype, dims): Layout) -> u64 {
    let elements = dims.iter().fold(1_u128, |n, &d| n.saturating_mul(d.into()));
    let blocks = elements.saturating_mul(dtype.block_bytes().into());
    u64::try_from(blocks.div_ceil(dtype.block_len().into())).unwrap_or(u64::MAX)
}

/// A graph in the order of its evaluation.
#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    pub(super) all: Vec<Tensor>,
    /// The ops and views, in order.
    pub(super) order: Vec<Id>,
    /// Inputs that no op of the graph may read.
    pub(super) unread: Vec<Id>,
}

impl Tensors {
    pub(super) fn add(&mut self, tensor: Tensor) -> Id {
        self.all.push(tensor);
        self.all.len() - 1
    }

    /// Adds an op at the end of the order.
    pub(super) fn push(&mut self, tensor: Tensor) -> Id {
        let id = self.add(tensor);
        self.order.push(id);
        id
    }

    /// Returns the tensor that owns the memory.
    pub(super) fn root(&self, id: Id) -> Id {
        self.all[id].root.unwrap_or(id)
    }
}
