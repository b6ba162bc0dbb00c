//! Tasks of a rank: its part of each launch, with the messages that bring operands and take results away.

use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_ir::{Launch, Op, Place, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::launch_values;
use tpc_runtime::ranks::{Blocks, Share};

use super::fuse::{FusedLaunch, Role};
use super::messages::{MessageWork, PlannedExchange, Post};
use super::place::device_index;
use super::roles::roles;
use super::task::{Binding, MemoryKind, StagingPart, Task};
use super::task_builder::{Reach, StagedOp, TaskBuilder, copy_task, malformed};

/// Replaces the memory of a value that a task reads.
fn redirect(task: &mut Task, value: Value, to: Binding) {
    let operands = task.ops.iter_mut().flat_map(|op| &mut op.operands);
    for operand in operands.filter(|o| o.memory == MemoryKind::Own && o.value == value) {
        *operand = to;
    }
}

impl TaskBuilder<'_> {
    /// Returns the tasks of this rank's part of a launch.
    pub(super) fn of_rank(
        &mut self,
        program: &Program,
        launch: Launch,
        reach: &mut Reach<'_>,
    ) -> Result<Vec<Task>, ExecError> {
        let Some(share) = self.rank.as_ref().map(|rank| rank.share) else {
            return self.tasks(program, launch, reach);
        };
        if !share.runs(launch) {
            return Ok(Vec::new());
        }
        let mut tasks = match share.blocks(launch) {
            Some(blocks) => self.joint_tasks(program, launch, (share, blocks))?,
            None => self.after_arrivals(program, launch, (share, reach))?,
        };
        self.add_posts(program, launch, &mut tasks)?;
        Ok(tasks)
    }

    /// Returns the tasks of a launch whose operands may come from other ranks.
    fn after_arrivals(
        &mut self,
        program: &Program,
        launch: Launch,
        (share, reach): (&Share, &mut Reach<'_>),
    ) -> Result<Vec<Task>, ExecError> {
        if share.arrivals(launch).next().is_none() {
            return self.tasks(program, launch, reach);
        }
        let (op, operands, results) = launch_values(program, launch)?;
        let mut tasks = match op {
            // The place of the result executes the copy, because the source is on another rank.
            Op::Copy(_) => {
                let to = device_index(program, results[0])?;
                vec![self.op_task(program, (launch, to), (op, operands.clone(), results))]
            }
            _ => self.tasks(program, launch, reach)?,
        };
        for (operand, message) in share.arrivals(launch) {
            let value = operands[operand];
            let TaskBuilder { rank, staging, .. } = self;
            let Some(rank) = rank else { continue };
            let part = rank.landing(program, (launch, message), staging)?;
            let memory = MemoryKind::Staging(part);
            for task in &mut tasks {
                redirect(task, value, Binding { value, memory });
            }
        }
        tasks.iter_mut().for_each(|task| task.stage += 1);
        Ok(tasks)
    }

    /// Adds the messages that take results of a launch to other ranks.
    fn add_posts(
        &mut self,
        program: &Program,
        launch: Launch,
        tasks: &mut Vec<Task>,
    ) -> Result<(), ExecError> {
        let Some(rank) = &mut self.rank else {
            return Ok(());
        };
        let share = rank.share;
        let Some(messages) = rank.posts.remove(&launch) else {
            return Ok(());
        };
        let planned = rank.plan.tasks[launch.index()].iter().map(|m| m.stage);
        let last = tasks.iter().map(|t| t.stage).chain(planned).max();
        let mut stage = last.map_or(0, |last| last + 1);
        let mut of_value: BTreeMap<Value, Vec<usize>> = BTreeMap::new();
        for message in messages {
            let value = share.messages()[message].value;
            of_value.entry(value).or_default().push(message);
        }
        for (value, messages) in of_value {
            let copy = match device_index(program, value)? {
                Some(device) => {
                    let of = ((StagedOp::Post, Vec::new()), 1);
                    let staged = self.staging_part(program, of, (0, value))?;
                    tasks.push(copy_task(device, stage, Binding::own(value), staged));
                    staging(staged)
                }
                None => None,
            };
            let Some(rank) = &mut self.rank else { continue };
            for message in messages {
                let message = share.messages()[message];
                rank.plan.posts.push(Post {
                    value,
                    to: message.to,
                    tag: message.tag,
                    copy,
                });
                let post = rank.plan.posts.len() - 1;
                rank.add(launch, stage + 1, MessageWork::Post(post));
            }
            // The next copy may need the same memory.
            stage += 2;
        }
        Ok(())
    }

    /// Returns the tasks of a collective among ranks. Devices copy their operands to staging buffers. A host node adds
    /// this rank's blocks, exchanges them, and computes the results, which the devices read.
    fn joint_tasks(
        &mut self,
        program: &Program,
        launch: Launch,
        (share, blocks): (&Share, &Blocks),
    ) -> Result<Vec<Task>, ExecError> {
        let first = program.launch(launch).covered_insts().first();
        let first = first.ok_or_else(|| malformed("a collective launch lacks its instruction"))?;
        let data = program.graph.inst(*first);
        let roles = roles(program, launch).unwrap_or_else(|| {
            let results = data.results.iter();
            let places = results.map(|v| (program.graph.value(*v).place, Role::Share));
            places.collect()
        });
        let places: Vec<Place> = roles.iter().map(|(place, _)| *place).collect();
        if places != program.launch(launch).places {
            return Err(malformed("a collective has its results in another order"));
        }
        let own: Vec<usize> = blocks.participants(share.rank()).collect();
        let sums = matches!(data.op, Op::AllReduce(_));
        let count = own.len() + if sums { 1 } else { own.len() };
        let devices: Result<Vec<Option<usize>>, ExecError> = (data.operands.iter())
            .map(|v| device_index(program, *v))
            .collect();
        let devices: Option<Vec<usize>> = devices?.into_iter().collect();
        let devices = devices.ok_or_else(|| malformed("the host takes part in a collective"))?;
        let of = || ((StagedOp::Joint, devices.clone()), count);
        let mut tasks = Vec::new();
        let mut operands: Vec<_> = data.operands.iter().map(|v| (*v, None)).collect();
        let mut results = Vec::new();
        for (part, &i) in own.iter().enumerate() {
            let value = data.operands[i];
            let staged = self.staging_part(program, of(), (part, value))?;
            tasks.push(copy_task(devices[i], 0, Binding::own(value), staged));
            operands[i].1 = staging(staged);
        }
        for (n, &i) in own.iter().enumerate() {
            // A fused launch may not store the sum, which has the operands' type and sizes.
            let (part, value) = match sums {
                true => (own.len(), data.operands[i]),
                false => (own.len() + n, data.results[i]),
            };
            let result = self.staging_part(program, of(), (part, value))?;
            let mut task = match &roles[i].1 {
                Role::Share => copy_task(devices[i], 2, result, Binding::own(data.results[i])),
                Role::Fused(fused) => {
                    let fused = of_sum(fused, &data.operands, value)?;
                    self.fused_task(program, launch, &fused)?
                }
            };
            task.stage = 2;
            redirect(&mut task, value, result);
            tasks.push(task);
            if !(sums && n > 0) {
                results.extend(staging(result).map(|part| (i, value, part)));
            }
        }
        let Some(rank) = &mut self.rank else {
            return Ok(tasks);
        };
        rank.plan.exchanges.push(PlannedExchange {
            op: data.op.clone(),
            dtype: program.graph.value(data.operands[0]).ty.dtype,
            blocks: blocks.clone(),
            tag: Share::tag(launch),
            operands,
            results,
        });
        let exchange = rank.plan.exchanges.len() - 1;
        rank.add(launch, 1, MessageWork::Exchange(exchange));
        Ok(tasks)
    }
}

fn staging(binding: Binding) -> Option<StagingPart> {
    match binding.memory {
        MemoryKind::Staging(part) => Some(part),
        MemoryKind::Own | MemoryKind::Terms(_) | MemoryKind::Halves => None,
    }
}

/// Returns a fused launch that reads a sum over devices instead of the tensors of all devices.
fn of_sum(fused: &FusedLaunch, parts: &[Value], sum: Value) -> Result<FusedLaunch, ExecError> {
    let op = fused.op.of_sum();
    let mut operands = fused.operands.clone();
    let at = operands.windows(parts.len()).position(|w| w == parts);
    let (Some(op), Some(at), None) = (op, at, fused.terms) else {
        return Err(malformed("a fused launch does not begin with its sum"));
    };
    operands.splice(at..at + parts.len(), [sum]);
    Ok(FusedLaunch {
        op,
        operands,
        terms: None,
        results: fused.results.clone(),
    })
}
