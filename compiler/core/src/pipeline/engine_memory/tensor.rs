use tpc_ir::{DType, RANK};

pub(super) type Id = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stored,
    Input,
    /// An op that may overwrite an operand of the same layout.
    InPlace,
    /// A lookup of table rows.
    Rows,
    Plain,
    View,
    Write,
    Copy,
    /// A reader that keeps a copied tensor alive.
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
    /// The tensor whose memory a view or a write uses.
    pub(super) root: Option<Id>,
    /// True if the program reads the tensor. Its memory is then never released.
    pub(super) is_output: bool,
    pub(super) is_weight: bool,
    /// The weight that determines the op's place.
    pub(super) weight: Option<Id>,
    /// Batch rows that the op computes.
    pub(super) rows: u64,
    /// Index of the device; the number of devices stands for the host.
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

    /// True if the tensor is not in the graph's buffers.
    pub(super) fn is_stored(&self) -> bool {
        self.kind == Kind::Stored
    }
}

pub(super) fn bytes_of((dtype, dims): Layout) -> u64 {
    let elements = dims.iter().fold(1_u128, |n, &d| n.saturating_mul(d.into()));
    let blocks = elements.saturating_mul(dtype.block_bytes().into());
    u64::try_from(blocks.div_ceil(dtype.block_len().into())).unwrap_or(u64::MAX)
}

#[derive(Clone, Debug, Default)]
pub(super) struct Tensors {
    pub(super) all: Vec<Tensor>,
    pub(super) order: Vec<Id>,
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
