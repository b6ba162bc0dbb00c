//! The tensors of an engine's graph, as its allocator sees them.

use tpc_ir::{DType, RANK};

/// A tensor's position in its graph.
pub(super) type Id = usize;

/// The kind of a tensor's computation, as far as it affects memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A weight or cache with its own buffer.
    Stored,
    Input,
    /// An op that may overwrite an operand of the same layout.
    InPlace,
    /// An op on rows of a table.
    Rows,
    Plain,
    /// A view, which is not an op.
    View,
    Write,
    Copy,
    /// A reader that extends the life of a copied tensor.
    Held,
}

pub(super) type Layout = (DType, [u64; RANK]);

#[derive(Clone, Debug)]
pub(super) struct Tensor {
    pub(super) kind: Kind,
    pub(super) bytes: u64,
    pub(super) layout: Layout,
    pub(super) contiguous: bool,
    pub(super) sources: Vec<Id>,
    /// The tensor that a view uses or that is written.
    pub(super) root: Option<Id>,
    /// True if the program reads it, so its memory is never released.
    pub(super) is_output: bool,
    pub(super) is_weight: bool,
    /// The source weight that determines the op's place.
    pub(super) weight: Option<Id>,
    /// Rows of the batch that the op computes.
    pub(super) rows: u64,
    /// A device's position, or the number of devices for the host.
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

    /// True if the tensor is outside the graph's buffers.
    pub(super) fn is_stored(&self) -> bool {
        self.kind == Kind::Stored
    }
}

pub(super) fn bytes_of((dtype, dims): Layout) -> u64 {
    let elements = dims.iter().fold(1_u128, |n, &d| n.saturating_mul(d.into()));
    let blocks = elements.saturating_mul(dtype.block_bytes().into());
    u64::try_from(blocks.div_ceil(dtype.block_len().into())).unwrap_or(u64::MAX)
}

/// A graph in evaluation order.
#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    pub(super) all: Vec<Tensor>,
    /// Ops and views, in order.
    pub(super) order: Vec<Id>,
    /// Inputs that no op may read.
    pub(super) unread: Vec<Id>,
}

impl Tensors {
    pub(super) fn add(&mut self, tensor: Tensor) -> Id {
        self.all.push(tensor);
        self.all.len() - 1
    }

    pub(super) fn push(&mut self, tensor: Tensor) -> Id {
        let id = self.add(tensor);
        self.order.push(id);
        id
    }

    pub(super) fn root(&self, id: Id) -> Id {
        self.all[id].root.unwrap_or(id)
    }
}
