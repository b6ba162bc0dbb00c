//! Tasks: the kernels of a launch at a place, before their views have slots in a frame.

use tpc_ir::{Op, Value};

use super::term_slot::TermSlot;
use crate::kernels::FusedOp;

/// The kernels that one place runs for a launch, in order.
pub(super) struct Task {
    /// The device; `None` for the host.
    pub(super) place: Option<usize>,
    /// The stage. Stage 1 starts after stage 0 has ended at all places of the launch.
    pub(super) stage: usize,
    pub(super) ops: Vec<TaskKernel>,
}

/// A kernel and its values.
pub(super) struct TaskKernel {
    pub(super) op: KernelOp,
    pub(super) operands: Vec<Binding>,
    pub(super) results: Vec<Binding>,
}

/// The op of a kernel.
pub(super) enum KernelOp {
    /// An op.
    Op(Op),
    /// One participant's part of a collective, with the participant's rank.
    CollectivePart(Op, usize),
    /// A fused op.
    Fused(FusedOp),
    /// The quantisation of activations into terms.
    Terms,
}

/// A value, and the memory that a kernel accesses for it.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub(super) value: Value,
    pub(super) memory: MemoryKind,
}

/// The memory that a kernel accesses for a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// The value's own memory.
    Own,
    /// A part of a staging buffer, which holds a copy.
    Staging(StagingPart),
    /// One of the device's two buffers for quantised activations.
    Terms(TermSlot),
}

impl Binding {
    /// Returns a binding to the value's own memory.
    pub(super) const fn own(value: Value) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Own,
        }
    }

    /// Returns a binding to quantised activations.
    pub(super) const fn terms(value: Value, slot: TermSlot) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Terms(slot),
        }
    }
}

/// A part of a staging buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StagingPart {
    pub(super) buffer: usize,
    pub(super) part: usize,
}

/// A host buffer for exchanges between devices without peer access, with a part per participant. Launches with the same participants share
/// it, one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct StagingBuffer {
    pub(super) parts: usize,
    /// The bytes per part.
    pub(super) bytes: usize,
}
