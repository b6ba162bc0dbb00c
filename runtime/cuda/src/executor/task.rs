//! Tasks: the kernels that a place runs for a launch, before their views have slots in a frame.

use tpc_ir::{Op, Value};

use super::term_slot::TermSlot;
use crate::kernels::FusedOp;

/// A task of one place: kernels that run one after another.
pub(super) struct Task {
    /// The device; `None` for the host.
    pub(super) place: Option<usize>,
    /// Tasks of stage 1 come after those of stage 0 on all places of the launch.
    pub(super) stage: usize,
    pub(super) ops: Vec<TaskKernel>,
}

/// A kernel and its values.
pub(super) struct TaskKernel {
    pub(super) op: KernelOp,
    pub(super) operands: Vec<Binding>,
    pub(super) results: Vec<Binding>,
}

/// What a kernel does.
pub(super) enum KernelOp {
    /// An op.
    Op(Op),
    /// The part of a collective that is the participant's of that number.
    CollectivePart(Op, usize),
    /// Several ops.
    Fused(FusedOp),
    /// It takes activations apart into terms.
    Terms,
}

/// A value as a kernel sees it.
#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub(super) value: Value,
    pub(super) memory: MemoryKind,
}

/// Where a value is seen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    /// In its own memory.
    Own,
    /// In a part of a staging buffer, to which it is copied.
    Staging(StagingPart),
    /// In a slot of the device's quantised activations.
    Terms(TermSlot),
}

impl Binding {
    /// In its own memory.
    pub(super) const fn own(value: Value) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Own,
        }
    }

    /// In terms.
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

/// A buffer in memory of the host by which devices exchange what they cannot reach: a part per participant. Launches of the same
/// participants use it one after another.
#[derive(Clone, Debug, Default)]
pub(super) struct StagingBuffer {
    pub(super) parts: usize,
    /// The bytes of a part.
    pub(super) bytes: usize,
}
