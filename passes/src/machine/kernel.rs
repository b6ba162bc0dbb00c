//! Kernels: an engine's launches for an op, with the properties that determine their time.

use tpc_ir::op::{OpCategory, Slot, Work};
use tpc_ir::{Bindings, DType, Op, Symbol};

use super::ExpertLoad;
use super::work::{Parts, work};

/// The kind of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelKind {
    /// A product with one matrix.
    Product,
    /// Products with the matrices of routed experts.
    Experts,
    /// Attention over the cache.
    Attention,
    /// A recurrent layer's state update.
    Recurrent,
    /// Any other op; its time is the time to move its operands.
    Light,
}

impl KernelKind {
    /// Returns the kernel kind of an op; `None` for transfers and ops without a launch.
    pub const fn of(op: &Op) -> Option<KernelKind> {
        Some(match op.category() {
            OpCategory::Stored
            | OpCategory::Input
            | OpCategory::Constant
            | OpCategory::Layout
            | OpCategory::Selection
            | OpCategory::Copy
            | OpCategory::Collective(_) => return None,
            OpCategory::Product => match op {
                Op::MulMatId(_) => KernelKind::Experts,
                _ => KernelKind::Product,
            },
            OpCategory::Heavy => match op {
                Op::FlashAttn(_) | Op::LightningIndexer(_) => KernelKind::Attention,
                _ => KernelKind::Recurrent,
            },
            OpCategory::Repetition
            | OpCategory::Assembly
            | OpCategory::Update
            | OpCategory::Light => KernelKind::Light,
        })
    }
}

/// A kernel on one device, for one batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    /// The kind.
    pub kind: KernelKind,
    /// Arithmetic and memory traffic.
    pub work: Work,
    /// Bytes of weights read.
    pub weight_bytes: f64,
    /// The element type of the weights; of the result if the op has no weights.
    pub dtype: DType,
}

impl Kernel {
    /// Returns the number of weights read.
    pub fn weights(&self) -> f64 {
        self.weight_bytes / self.dtype.element_bytes()
    }

    /// Returns the number of weights that the kernel unpacks: weights with codes below eight bits.
    pub fn unpacked_weights(&self) -> f64 {
        match self.dtype.element_bytes() < 1.0 {
            true => self.weights(),
            false => 0.0,
        }
    }

    /// Returns the number of tokens per matrix.
    pub fn tokens(&self) -> f64 {
        match self.weight_bytes > 0.0 {
            true => self.work.flops / (2.0 * self.weights()),
            false => 0.0,
        }
    }
}

/// Returns the kernel of an op with at least one result; `None` for ops without a launch.
pub(crate) fn kernel(
    op: &Op,
    parts: &impl Parts,
    batch: &Bindings,
    expert_load: &ExpertLoad,
) -> Option<Kernel> {
    let kind = KernelKind::of(op)?;
    let work = work(op, parts, batch, expert_load);
    let (weight_bytes, typed) = match kind {
        KernelKind::Product | KernelKind::Experts => {
            let moved = parts.elements(Slot::Operand(1)) + parts.elements(Slot::Result(0));
            ((work.bytes - 4.0 * moved).max(0.0), Slot::Operand(0))
        }
        KernelKind::Attention | KernelKind::Recurrent | KernelKind::Light => (0.0, Slot::Result(0)),
    };
    Some(Kernel {
        kind,
        work,
        weight_bytes,
        dtype: parts.ty(typed).dtype,
    })
}

/// The kind of kernels for a batch's products.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// Few tokens: matrix-vector products, limited by reading weights.
    Vectors,
    /// Many tokens: matrix-matrix products.
    Matrices,
}

impl Regime {
    /// The maximum number of tokens for matrix-vector products, as in llama.cpp.
    pub const MOST_VECTORS: u64 = 8;

    /// Returns the regime of a batch.
    pub fn of(batch: &Bindings) -> Regime {
        if batch.get(Symbol::NTokens) <= Self::MOST_VECTORS {
            Regime::Vectors
        } else {
            Regime::Matrices
        }
    }
}
