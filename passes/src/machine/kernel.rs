//! Kernels: what engines launch for an op, in the terms that decide its time.

use tpc_ir::op::{OpCategory, Slot, Work};
use tpc_ir::{Bindings, Op, Symbol};

use super::ExpertLoad;
use super::work::{Parts, work};

/// The kind of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelKind {
    /// A product with one matrix.
    Product,
    /// Products with the matrices of the experts that tokens are routed to.
    Experts,
    /// Attention over the cache.
    Attention,
    /// A recurrent layer's update of its state.
    Recurrent,
    /// Anything else: its time is that of moving its operands.
    Light,
}

impl KernelKind {
    /// The kind of an op; `None` where nothing is launched for it, or it is a transfer.
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
    /// Its kind.
    pub kind: KernelKind,
    /// Its arithmetic and memory traffic.
    pub work: Work,
    /// Bytes of weights among those that it reads.
    pub weight_bytes: f64,
    /// Codes of less than eight bits among these weights, each of which is unpacked.
    pub packed: f64,
}

/// The kernel of an op with at least one result; `None` where nothing is launched for it.
pub(crate) fn kernel(
    op: &Op,
    parts: &impl Parts,
    batch: &Bindings,
    expert_load: &ExpertLoad,
) -> Option<Kernel> {
    let kind = KernelKind::of(op)?;
    let work = work(op, parts, batch, expert_load);
    let (mut weight_bytes, mut packed) = (0.0, 0.0);
    if matches!(kind, KernelKind::Product | KernelKind::Experts) {
        let moved = parts.elements(Slot::Operand(1)) + parts.elements(Slot::Result(0));
        weight_bytes = (work.bytes - 4.0 * moved).max(0.0);
        // Codes of eight bits are integers as they lie there.
        let bytes = parts.ty(Slot::Operand(0)).dtype.element_bytes();
        if bytes < 1.0 {
            packed = weight_bytes / bytes;
        }
    }
    Some(Kernel {
        kind,
        work,
        weight_bytes,
        packed,
    })
}

/// The way in which engines compute products for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// Few tokens: products are by vectors, and the reading of weights takes their time.
    Vectors,
    /// Many tokens: products are by matrices.
    Matrices,
}

impl Regime {
    /// The most tokens whose products are by vectors, as llama.cpp has it.
    pub const MOST_VECTORS: u64 = 8;

    /// The regime of a batch.
    pub fn of(batch: &Bindings) -> Regime {
        if batch.get(Symbol::NTokens) <= Self::MOST_VECTORS {
            Regime::Vectors
        } else {
            Regime::Matrices
        }
    }
}
