//! Plans quantised activations (int8 terms): which launches write and read them.
//!
//! Each device has two buffers, so a launch can read terms and write the terms of its result.

use std::collections::BTreeMap;

use tpc_ir::op::FlashAttn;
use tpc_ir::program::{Program, Step};
use tpc_ir::{Launch, Op, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::launch_op;

use super::fuse::{FusedLaunch, Role};
use super::roles::{format_of, roles};
use super::term_slot::TermSlot;
use crate::kernels::{FusedOp, WideForm};
use crate::planes::Planes;

/// A key of quantised activations: the value, and the elements per column.
type ActivationKey = (Value, u64);

/// Batches in which a launch can write terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batches {
    All,
    /// Batches whose products read no halves.
    FewColumns,
}

type PlacedLaunch = (Launch, Place);

#[derive(Debug, Default)]
pub(super) struct TermsPlan {
    /// For each launch that reads terms: the buffer, and true if the buffer already holds the terms.
    reads: BTreeMap<PlacedLaunch, (TermSlot, bool)>,
    /// For each launch that writes terms: the value as the next product reads it, and the buffer.
    makes: BTreeMap<PlacedLaunch, (Value, TermSlot)>,
}

impl TermsPlan {
    pub(super) fn new(program: &Program) -> Result<TermsPlan, ExecError> {
        let mut out = TermsPlan::default();
        let queues = program.phases.iter().flat_map(|phase| &phase.queues);
        for queue in queues.filter(|q| q.place != Place::Host) {
            let launches = queue.steps.iter().filter_map(|step| match step {
                Step::Launch(launch) => Some(*launch),
                Step::Wait { .. } => None,
            });
            // The content of both buffers, the buffer read last, and the last launch that can quantise its result.
            let mut held: [Option<ActivationKey>; 2] = [None; 2];
            let mut last = TermSlot::Second;
            let mut maker: Option<(ActivationKey, PlacedLaunch, Batches)> = None;
            for launch in launches {
                let here = (launch, queue.place);
                let op = placed_op(program, here)?;
                if let Some(x) = activations(program, &op) {
                    let key = key(program, x);
                    let at = held.iter().position(|h| key.is_some() && *h == key);
                    let made = maker.filter(|(made, _, batches)| {
                        Some(*made) == key && (*batches == Batches::All || reads_halves(&op))
                    });
                    let (slot, is_ready) = match (at, made) {
                        (Some(0), _) => (TermSlot::First, true),
                        (Some(_), _) => (TermSlot::Second, true),
                        (None, made) => (last.other(), made.is_some()),
                    };
                    if let (None, Some((_, by, _))) = (at, made) {
                        out.makes.insert(by, (x, slot));
                    }
                    // Later launches may read the terms in batches of many columns, too.
                    let all = at.is_some() || made.is_none_or(|m| m.2 == Batches::All);
                    held[slot.number() as usize] = key.filter(|_| all);
                    out.reads.insert(here, (slot, is_ready));
                    (last, maker) = (slot, None);
                }
                if let Some((made, batches)) = can_make_terms(program, &op) {
                    maker = Some((made, here, batches));
                }
            }
        }
        Ok(out)
    }

    /// Returns the buffer that a launch reads, and true if the buffer already holds the terms.
    pub(super) fn read(&self, at: PlacedLaunch) -> (TermSlot, bool) {
        self.reads
            .get(&at)
            .copied()
            .unwrap_or((TermSlot::First, false))
    }

    /// Returns the value whose terms a launch writes, as the next product reads it, and the buffer.
    pub(super) fn write(&self, at: PlacedLaunch) -> Option<(Value, TermSlot)> {
        self.makes.get(&at).copied()
    }
}

/// Returns the value before reshapes and the size of a column; `None` if the size is unknown.
fn key(program: &Program, v: Value) -> Option<ActivationKey> {
    let graph = &program.graph;
    let k = graph.value(v).ty.dims[0].as_const()?;
    let mut base = v;
    loop {
        let data = graph.inst(graph.value(base).def.0);
        if !matches!(data.op, Op::Reshape(_))
            || program.home(base)?.buffer != program.home(data.operands[0])?.buffer
        {
            return Some((base, k));
        }
        base = data.operands[0];
    }
}

enum LaunchOp {
    Fused(FusedLaunch),
    Op(Op, Vec<Value>, Vec<Value>),
    None,
}

fn placed_op(program: &Program, (launch, place): PlacedLaunch) -> Result<LaunchOp, ExecError> {
    let Some(roles) = roles(program, launch) else {
        let (op, operands, results) = launch_op(program, launch)?;
        return Ok(LaunchOp::Op(op, operands, results));
    };
    let own = roles.into_iter().find(|(at, _)| *at == place);
    Ok(match own {
        Some((_, Role::Fused(fused))) => LaunchOp::Fused(fused),
        Some((_, Role::Share)) | None => LaunchOp::None,
    })
}

fn activations(program: &Program, op: &LaunchOp) -> Option<Value> {
    match op {
        LaunchOp::Fused(fused) => fused.terms.map(|at| fused.operands[at]),
        LaunchOp::Op(op, operands, _) => terms_operand(program, op, operands),
        LaunchOp::None => None,
    }
}

pub(super) fn terms_operand(program: &Program, op: &Op, operands: &[Value]) -> Option<Value> {
    let product = matches!(op, Op::MulMat(_) | Op::MulMatId(_));
    let planes = |v: &Value| format_of(program, *v) == Planes::FORMAT;
    let first = operands.first().filter(|_| product);
    first.filter(|v| planes(v)).and(operands.get(1)).copied()
}

/// True if a launch reads halves instead of terms in batches of many columns.
fn reads_halves(op: &LaunchOp) -> bool {
    match op {
        LaunchOp::Fused(fused) => fused.op.wide_form().is_some(),
        LaunchOp::Op(op, ..) => wide_form(op).is_some(),
        LaunchOp::None => false,
    }
}

/// Returns how an op with a weight in planes reads activations as f16 in batches of many tokens.
pub(super) fn wide_form(op: &Op) -> Option<WideForm> {
    match op {
        Op::MulMat(_) => Some(WideForm::Columns),
        Op::MulMatId(_) => Some(WideForm::Experts),
        _ => None,
    }
}

fn can_make_terms(program: &Program, op: &LaunchOp) -> Option<(ActivationKey, Batches)> {
    let (op, results) = match op {
        LaunchOp::Fused(fused) => return fused_terms(program, fused),
        LaunchOp::Op(op, _, results) => (op, results),
        LaunchOp::None => return None,
    };
    let Op::FlashAttn(FlashAttn { lse: false, .. }) = op else {
        return None;
    };
    // A column has the rows of all heads in order.
    let dims = &program.graph.value(results[0]).ty.dims;
    let (n, heads) = (dims[0].as_const()?, dims[1].as_const()?);
    let whole = n.is_multiple_of(32) && (n * heads).is_multiple_of(64);
    whole.then_some(((results[0], n * heads), Batches::All))
}

fn fused_terms(program: &Program, fused: &FusedLaunch) -> Option<(ActivationKey, Batches)> {
    let result = *fused.results.last()?;
    let k = program.graph.value(result).ty.dims[0].as_const()?;
    let batches = match fused.op {
        FusedOp::NormMul(..) => Batches::All,
        FusedOp::MulMatGlu(_) | FusedOp::MulMatIdGlu(..) => Batches::FewColumns,
        _ => return None,
    };
    k.is_multiple_of(32).then_some(((result, k), batches))
}
