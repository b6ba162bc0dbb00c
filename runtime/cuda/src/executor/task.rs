//! Tasks: the kernels of a launch on one device, before their views have slots.

use tpc_ir::op::MulMatId;
use tpc_ir::program::Program;
use tpc_ir::{Op, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::max_sizes;

use super::term_slot::TermSlot;
use crate::kernels::{FusedOp, WideForm};

pub(super) struct Task {
    /// The device; `None` for the host.
    pub(super) place: Option<usize>,
    /// Stage 1 starts after stage 0 has ended on all devices.
    pub(super) stage: usize,
    pub(super) ops: Vec<TaskKernel>,
}

pub(super) struct TaskKernel {
    pub(super) op: KernelOp,
    pub(super) operands: Vec<Binding>,
    pub(super) results: Vec<Binding>,
    /// The activations that the kernel reads as f16 in batches of many tokens.
    pub(super) halves: Option<Value>,
}

pub(super) enum KernelOp {
    Op(Op),
    /// The part of a participant in a collective, with its rank.
    CollectivePart(Op, usize),
    Fused(FusedOp),
    Terms,
    /// Activations as f16, in batches of many tokens.
    Halves(WideForm),
    /// The order of entries by expert, in scratch memory, in batches of many tokens.
    ExpertOrder(MulMatId),
    /// The sum of expert products in scratch memory, in batches of many tokens.
    SumEntries(FusedOp),
}

#[derive(Clone, Copy)]
pub(super) struct Binding {
    pub(super) value: Value,
    pub(super) memory: MemoryKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MemoryKind {
    Own,
    /// A copy in a staging buffer.
    Staging(StagingPart),
    Terms(TermSlot),
    Halves,
}

impl Binding {
    pub(super) const fn own(value: Value) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Own,
        }
    }

    pub(super) const fn halves(value: Value) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Halves,
        }
    }

    pub(super) const fn terms(value: Value, slot: TermSlot) -> Binding {
        Binding {
            value,
            memory: MemoryKind::Terms(slot),
        }
    }
}

impl TaskKernel {
    pub(super) fn new(op: KernelOp, operands: Vec<Binding>, results: Vec<Binding>) -> TaskKernel {
        TaskKernel {
            op,
            operands,
            results,
            halves: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StagingPart {
    pub(super) buffer: usize,
    pub(super) part: usize,
}

/// A host buffer for exchanges without peer access, with two parts per participant. Launches with the same participants
/// use the parts in turn.
#[derive(Clone, Debug, Default)]
pub(super) struct StagingBuffer {
    pub(super) parts: usize,
    pub(super) bytes: usize,
    /// The number of launches that use the buffer.
    pub(super) uses: usize,
}

/// Returns the bytes of a value in a staging buffer, for the largest batch.
pub(super) fn staged_bytes(program: &Program, value: Value) -> Result<usize, ExecError> {
    let mut most = 0;
    for shape in &program.shapes {
        let [n, rest @ ..] = max_sizes(program, value, &shape.most)?;
        let row = program.graph.value(value).ty.dtype.bytes(n as u64);
        let rows = rest.iter().try_fold(1_usize, |n, d| n.checked_mul(*d));
        let bytes = row
            .zip(rows)
            .and_then(|(row, rows)| rows.checked_mul(row as usize));
        let bytes = bytes.ok_or_else(|| ExecError::Size {
            what: format!("of {value}"),
        })?;
        most = most.max(bytes.next_multiple_of(256));
    }
    Ok(most)
}
