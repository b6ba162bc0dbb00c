use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_ir::{Launch, Op, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::launch_op;
use tpc_runtime::ranks::Share;

use super::fuse::{FusedLaunch, Role};
use super::place::{device, device_index};
use super::rank_plan::RankPlan;
use super::roles::roles;
use super::task::{
    Binding, KernelOp, MemoryKind, StagingBuffer, StagingPart, Task, TaskKernel, staged_bytes,
};
use super::term_slot::TermSlot;
use super::terms::{TermsPlan, terms_operand, wide_form};
use crate::kernels::{FusedOp, WideForm};

/// Returns true if kernels of the first device can access the memory of the second.
pub(super) type Reach<'a> = dyn FnMut(usize, usize) -> Result<bool, ExecError> + 'a;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StagedOp {
    Copy,
    Collective,
    /// A value that this rank sends.
    Post,
    /// A collective among ranks.
    Joint,
}

#[derive(Default)]
pub(super) struct TaskBuilder<'a> {
    /// This rank's messages; `None` without ranks.
    pub(super) rank: Option<RankPlan<'a>>,
    terms: TermsPlan,
    /// The index of the staging buffer for each list of participants. Copies and collectives have different buffers: all
    /// participants order their collectives, but not their copies.
    buffers: BTreeMap<(StagedOp, Vec<usize>), usize>,
    pub(super) staging: Vec<StagingBuffer>,
}

impl<'a> TaskBuilder<'a> {
    pub(super) fn new(
        program: &Program,
        share: Option<&'a Share>,
    ) -> Result<TaskBuilder<'a>, ExecError> {
        let rank = share.map(|share| RankPlan::new(program, share));
        Ok(TaskBuilder {
            rank: rank.transpose()?,
            terms: TermsPlan::new(program)?,
            ..TaskBuilder::default()
        })
    }

    pub(super) fn tasks(
        &mut self,
        program: &Program,
        launch: Launch,
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Task>, ExecError> {
        if let Some(roles) = roles(program, launch) {
            return match roles.as_slice() {
                [(_, Role::Fused(fused))] => Ok(vec![self.fused_task(program, launch, fused)?]),
                _ => self.collective_tasks(program, launch, &roles, reach),
            };
        }
        let (op, operands, results) = launch_op(program, launch)?;
        if op.is_collective() {
            let places = results
                .iter()
                .map(|v| (program.graph.value(*v).place, Role::Share));
            return self.collective_tasks(program, launch, &places.collect::<Vec<_>>(), reach);
        }
        let to = match program.launch(launch).places.as_slice() {
            [place] => device(*place)?.map(|d| d.0 as usize),
            _ => {
                return Err(malformed(
                    "a launch that is not a collective has several places",
                ));
            }
        };
        let Op::Copy(_) = op else {
            return Ok(vec![self.op_task(
                program,
                (launch, to),
                (op, operands, results),
            )]);
        };
        let from = device_index(program, operands[0])?;
        if let (Some(from), Some(to)) = (from, to)
            && from != to
            && !reach(from, to)?
        {
            let of = (StagedOp::Copy, vec![from, to]);
            let part = self.staging_part(program, (of, 2), (0, operands[0]))?;
            return Ok(vec![
                copy_task(from, 0, Binding::own(operands[0]), part),
                copy_task(to, 1, part, Binding::own(results[0])),
            ]);
        }
        // The source device executes a copy. All devices can access host memory.
        let place = from.or(to);
        Ok(vec![self.op_task(
            program,
            (launch, place),
            (op, operands, results),
        )])
    }

    pub(super) fn fused_task(
        &self,
        program: &Program,
        launch: Launch,
        fused: &FusedLaunch,
    ) -> Result<Task, ExecError> {
        let place = device_index(program, fused.results[0])?;
        let here = program.graph.value(fused.results[0]).place;
        let mut operands: Vec<Binding> = fused.operands.iter().map(|v| Binding::own(*v)).collect();
        let mut results: Vec<Binding> = fused.results.iter().map(|v| Binding::own(*v)).collect();
        // If an update has its result in other memory, copy the operand first.
        let mut ops = Vec::new();
        for inst in program.launch(launch).covered_insts() {
            let data = program.graph.inst(*inst);
            ops.extend(update_copy(
                program,
                &data.op,
                data.operands[0],
                data.results[0],
            ));
        }
        let mut halves = None;
        if let Some(at) = fused.terms {
            let x = fused.operands[at];
            let (slot, is_ready) = self.terms.read((launch, here));
            operands[at] = Binding::terms(x, slot);
            if !is_ready {
                ops.push(terms_kernel(x, slot));
            }
            if let Some(form) = fused.op.wide_form() {
                ops.push(halves_kernel(x, form));
                halves = Some(x);
            }
            if let Some(experts) = fused.op.experts() {
                // The weight comes first, the indices follow the terms.
                let order = KernelOp::ExpertOrder(experts.clone());
                let reads = [0, at + 1].map(|i| Binding::own(fused.operands[i])).into();
                ops.push(TaskKernel::new(order, reads, vec![results[0]]));
            }
        }
        if let (Some((_, slot)), Some(made)) =
            (self.terms.write((launch, here)), fused.results.last())
        {
            results.push(Binding::terms(*made, slot));
        }
        let sum = matches!(fused.op, FusedOp::MulMatIdSum(..)).then(|| {
            let op = KernelOp::SumEntries(fused.op.clone());
            TaskKernel::new(op, operands.clone(), results.clone())
        });
        ops.push(TaskKernel {
            halves,
            ..TaskKernel::new(KernelOp::Fused(fused.op.clone()), operands, results)
        });
        ops.extend(sum);
        Ok(Task {
            place,
            stage: 0,
            ops,
        })
    }

    /// Returns the task of an op on one device. The task first copies an operand that is updated in other memory, and
    /// quantises activations of products with weights in planes.
    pub(super) fn op_task(
        &self,
        program: &Program,
        (launch, place): (Launch, Option<usize>),
        (op, operands, results): (Op, Vec<Value>, Vec<Value>),
    ) -> Task {
        let mut reads: Vec<Binding> = operands.iter().map(|v| Binding::own(*v)).collect();
        let here = (launch, program.graph.value(results[0]).place);
        let mut results: Vec<Binding> = results.iter().map(|v| Binding::own(*v)).collect();
        let (mut ops, mut halves) = (Vec::new(), None);
        if place.is_some() {
            let first = reads.first().map(|r| r.value);
            let moved = first.and_then(|from| update_copy(program, &op, from, results[0].value));
            if let Some(copy) = moved {
                ops.push(copy);
                reads[0] = results[0];
            }
            if let Some(x) = terms_operand(program, &op, &operands) {
                let (slot, is_ready) = self.terms.read(here);
                reads[1] = Binding::terms(x, slot);
                if !is_ready {
                    ops.push(terms_kernel(x, slot));
                }
                if let Some(form) = wide_form(&op) {
                    ops.push(halves_kernel(x, form));
                    halves = Some(x);
                }
                if let Op::MulMatId(op) = &op {
                    let order = KernelOp::ExpertOrder(op.clone());
                    let order_reads = vec![reads[0], reads[2]];
                    ops.push(TaskKernel::new(order, order_reads, results.clone()));
                }
            }
            if let Some((x, slot)) = self.terms.write(here) {
                results.push(Binding::terms(x, slot));
            }
        }
        ops.push(TaskKernel {
            halves,
            ..TaskKernel::new(KernelOp::Op(op), reads, results)
        });
        Task {
            place,
            stage: 0,
            ops,
        }
    }

    /// Returns the tasks of a collective: one per participant, or two without peer access.
    fn collective_tasks(
        &mut self,
        program: &Program,
        launch: Launch,
        roles: &[(Place, Role)],
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Task>, ExecError> {
        let collective = program.launch(launch).covered_insts().first();
        let collective =
            collective.ok_or_else(|| malformed("a collective launch lacks its instruction"))?;
        let data = program.graph.inst(*collective);
        let (seen, mut out) = self.exchange(program, &data.operands, reach)?;
        for (rank, (place, role)) in roles.iter().enumerate() {
            let mut task = match role {
                Role::Share => Task {
                    place: device(*place)?.map(|d| d.0 as usize),
                    stage: 1,
                    ops: vec![TaskKernel::new(
                        KernelOp::CollectivePart(data.op.clone(), rank),
                        seen.clone(),
                        vec![Binding::own(data.results[rank])],
                    )],
                },
                Role::Fused(fused) => self.fused_task(program, launch, fused)?,
            };
            task.stage = 1;
            let operands = task.ops.iter_mut().flat_map(|op| &mut op.operands);
            for operand in operands.filter(|o| o.memory == MemoryKind::Own) {
                let staged = seen.iter().find(|s| s.value == operand.value);
                *operand = staged.copied().unwrap_or(*operand);
            }
            out.push(task);
        }
        Ok(out)
    }

    /// Returns the memory through which all devices read each operand, and the copies into it.
    fn exchange(
        &mut self,
        program: &Program,
        given: &[Value],
        reach: &mut Reach<'_>,
    ) -> Result<(Vec<Binding>, Vec<Task>), ExecError> {
        let mut places = Vec::new();
        for value in given {
            let place = device_index(program, *value)?;
            places.push(place.ok_or_else(|| malformed("the host takes part in a collective"))?);
        }
        let mut reached = true;
        for (reader, owner) in places
            .iter()
            .flat_map(|a| places.iter().map(move |b| (*a, *b)))
        {
            reached &= reader == owner || reach(reader, owner)?;
        }
        let mut copies = Vec::new();
        let mut seen: Vec<Binding> = given.iter().map(|v| Binding::own(*v)).collect();
        if !reached {
            for (part, seen) in seen.iter_mut().enumerate() {
                let of = (StagedOp::Collective, places.clone());
                let count = places.len();
                let staged = self.staging_part(program, (of, count), (part, seen.value))?;
                copies.push(copy_task(places[part], 0, *seen, staged));
                *seen = staged;
            }
        }
        Ok((seen, copies))
    }

    /// Returns part `part` of `count` parts of a staging buffer for a value, sized for the largest batch.
    pub(super) fn staging_part(
        &mut self,
        program: &Program,
        (participants, count): ((StagedOp, Vec<usize>), usize),
        (part, value): (usize, Value),
    ) -> Result<Binding, ExecError> {
        let next = self.staging.len();
        let buffer = *self.buffers.entry(participants).or_insert(next);
        if buffer == next {
            self.staging.push(StagingBuffer::default());
        }
        let staging = &mut self.staging[buffer];
        // Launches use the halves of the buffer in turn.
        staging.parts = staging.parts.max(2 * count);
        if part == 0 {
            staging.uses += 1;
        }
        let part = part + staging.uses % 2 * count;
        staging.bytes = staging.bytes.max(staged_bytes(program, value)?);
        Ok(Binding {
            value,
            memory: MemoryKind::Staging(StagingPart { buffer, part }),
        })
    }
}

pub(super) fn copy_task(place: usize, stage: usize, from: Binding, to: Binding) -> Task {
    Task {
        place: Some(place),
        stage,
        ops: vec![copy_kernel(from, to)],
    }
}

fn copy_kernel(from: Binding, to: Binding) -> TaskKernel {
    let op = KernelOp::Op(Op::Copy(tpc_ir::op::Copy));
    TaskKernel::new(op, vec![from], vec![to])
}

fn update_copy(program: &Program, op: &Op, from: Value, to: Value) -> Option<TaskKernel> {
    let moved = op.is_update() && program.home(from) != program.home(to);
    moved.then(|| copy_kernel(Binding::own(from), Binding::own(to)))
}

fn terms_kernel(x: Value, slot: TermSlot) -> TaskKernel {
    let made = vec![Binding::terms(x, slot)];
    TaskKernel::new(KernelOp::Terms, vec![Binding::own(x)], made)
}

fn halves_kernel(x: Value, form: WideForm) -> TaskKernel {
    let made = vec![Binding::halves(x)];
    TaskKernel::new(KernelOp::Halves(form), vec![Binding::own(x)], made)
}

pub(super) fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
