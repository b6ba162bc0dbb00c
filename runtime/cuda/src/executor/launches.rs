use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use tpc_cpu::host::size_of;
use tpc_ir::program::{BatchShape, Program};
use tpc_ir::{DType, Dim, Launch, Op, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::{launch_label, max_sizes};
use tpc_runtime::ranks::Share;

use super::best_output::{BestOutput, OutputPart, best_output};
use super::exchange::{ExchangePlan, ExchangeSlot};
use super::messages::{MessagePlan, MessageTask};
use super::options::CudaOptions;
use super::phase_graph::KernelPosition;
use super::roles::format_of;
use super::task::{Binding, KernelOp, MemoryKind, StagingBuffer, StagingPart, Task, TaskKernel};
use super::task_builder::{Reach, TaskBuilder};
use super::term_slot::TermSlot;
use crate::driver::DeviceInfo;
use crate::kernels::{
    Halves, Kernel, Request, Scratch, Tensor, Terms, orders_experts, reads_halves, select,
    select_best_logits, select_collective, select_expert_order, select_fused, select_halves,
    select_sum_entries, select_terms,
};
use crate::planes::Planes;

#[derive(Debug)]
pub(super) enum LaunchTask {
    /// A sequence of kernels. A stage starts after earlier stages have ended on all devices.
    Device {
        device: usize,
        stage: usize,
        kernels: Vec<KernelRun>,
    },
    /// A host op: an index into [`Launches::hosted`].
    Host {
        op: usize,
        stage: usize,
        slots: Range<usize>,
    },
}

impl LaunchTask {
    pub(super) const fn stage(&self) -> usize {
        match self {
            LaunchTask::Device { stage, .. } | LaunchTask::Host { stage, .. } => *stage,
        }
    }
}

#[derive(Debug)]
pub(super) struct KernelRun {
    /// By batch shape; `None` if the shape does not need the kernel.
    pub(super) kernels: Vec<Option<Kernel>>,
    /// The slots of the operands, of the results, of a size, and of scratch memory.
    pub(super) slots: Range<usize>,
    /// The number of operands.
    pub(super) operands: usize,
    /// The number of results.
    pub(super) results: usize,
    /// The weights in planes that a launch reads, by batch shape.
    pub(super) weights: Vec<WeightRead>,
}

/// The weights in planes that a launch reads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WeightRead {
    /// The bytes.
    pub(super) bytes: u64,
    /// The elements.
    pub(super) elements: u64,
}

/// A kernel that finds the largest logits of a part of the output.
#[derive(Debug)]
pub(super) struct BestRun {
    pub(super) device: usize,
    pub(super) run: KernelRun,
}

#[derive(Debug, Default)]
pub(super) struct Launches {
    pub(super) tasks: Vec<Vec<LaunchTask>>,
    pub(super) slots: Vec<Value>,
    /// Slots whose view only passes a size.
    pub(super) sizes: BTreeMap<usize, Dim>,
    pub(super) of_device: Vec<Range<usize>>,
    pub(super) hosted: Vec<(Op, Vec<Value>, Vec<Value>)>,
    /// Slots in a staging buffer.
    pub(super) staged: BTreeMap<usize, StagingPart>,
    pub(super) staging: Vec<StagingBuffer>,
    pub(super) terms: BTreeMap<usize, TermSlot>,
    /// Slots of values that devices exchange.
    pub(super) exchanged: BTreeMap<usize, ExchangeSlot>,
    /// The bytes of each of the two buffers for exchanged values, by device.
    pub(super) exchange_bytes: Vec<u64>,
    /// Slots of activations as f16.
    pub(super) halves: BTreeSet<usize>,
    /// The bytes of the buffer for activations as f16, by device.
    pub(super) halves_bytes: Vec<u64>,
    /// The bytes of each of the two buffers for quantised activations, by device.
    pub(super) terms_bytes: Vec<u64>,
    pub(super) scratch: BTreeMap<usize, ScratchPart>,
    /// The scratch memory of each device, which launches use one after another.
    pub(super) scratch_bytes: Vec<Scratch>,
    /// The output whose largest elements devices can find.
    pub(super) best_output: Option<BestOutput>,
    /// The kernels that find them.
    pub(super) best: Vec<BestRun>,
    /// Slots in the memory of the largest elements, with the part.
    pub(super) best_slots: BTreeMap<usize, usize>,
    /// This rank's part of the program; `None` for all of it.
    pub(super) share: Option<Share>,
    /// The messages between ranks.
    pub(super) plan: Option<MessagePlan>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScratchPart {
    Counters,
    Parts,
}

impl Launches {
    /// Selects the kernels of all launches, or of a rank's share. Returns an error if an op is not supported or a size
    /// is unknown.
    pub(super) fn new(
        (program, share): (&Program, Option<&Share>),
        infos: &[DeviceInfo],
        reach: &mut Reach<'_>,
        options: CudaOptions,
    ) -> Result<Launches, ExecError> {
        let devices = program.graph.devices.len();
        // The largest logits are found on one rank only.
        let best_output = match share {
            None => best_output(program)?,
            Some(_) => None,
        };
        let mut out = Launches {
            tasks: program.launches.iter().map(|_| Vec::new()).collect(),
            terms_bytes: vec![0; devices],
            halves_bytes: vec![0; devices],
            scratch_bytes: vec![Scratch::default(); devices],
            best_output,
            share: share.cloned(),
            ..Launches::default()
        };
        let mut builder = TaskBuilder::new(program, share)?;
        let mut tasks: Vec<(Launch, Task)> = Vec::new();
        for i in 0..program.launches.len() {
            let launch = Launch::new(i);
            let at = |e: ExecError| e.at(|| launch_label(program, launch));
            for mut task in builder.of_rank(program, launch, reach).map_err(at)? {
                let mut ops = Vec::new();
                for op in task.ops {
                    if !is_empty(program, &op).map_err(at)? {
                        ops.push(op);
                    }
                }
                task.ops = ops;
                if !task.ops.is_empty() {
                    tasks.push((launch, task));
                }
            }
        }
        let exchange = ExchangePlan::new(program, &tasks);
        out.exchange_bytes = (0..devices).map(|d| exchange.bytes(program, d)).collect();
        for place in (0..devices).map(Some).chain([None]) {
            let start = out.slots.len();
            for (launch, task) in tasks.iter().filter(|(_, t)| t.place == place) {
                let at = |e: ExecError| e.at(|| launch_label(program, *launch));
                let task = match place {
                    Some(d) => out.device_task(program, task, (d, &infos[d]), options),
                    None => out.host_task(task),
                };
                out.tasks[launch.index()].push(task.map_err(at)?);
            }
            if let Some(d) = place {
                out.best_of_device(program, (d, &infos[d]), options)?;
                out.of_device.push(start..out.slots.len());
            }
        }
        out.plan = builder.rank.map(|rank| rank.plan);
        out.staging = builder.staging;
        out.exchanged = out.exchanged_slots(program, &exchange);
        Ok(out)
    }

    /// Returns the number of stages of a launch.
    pub(super) fn stages(&self, launch: Launch) -> usize {
        let tasks = self.tasks[launch.index()].iter().map(LaunchTask::stage);
        let messages = self.messages(launch).iter().map(|task| task.stage);
        tasks.chain(messages).max().map_or(0, |last| last + 1)
    }

    /// Returns the messages of a launch.
    pub(super) fn messages(&self, launch: Launch) -> &[MessageTask] {
        self.plan
            .as_ref()
            .map_or(&[], |plan| &plan.tasks[launch.index()])
    }

    /// True if a node with these slots accesses a buffer of messages.
    pub(super) fn reads_messages(&self, slots: &Range<usize>) -> bool {
        self.plan.is_some() && self.staged.range(slots.clone()).next().is_some()
    }

    /// Returns the kernel at a position.
    pub(super) fn kernel_run(&self, at: KernelPosition) -> Option<&KernelRun> {
        let tasks = self.tasks.get(at.launch.index())?;
        match tasks.get(at.task)? {
            LaunchTask::Device { kernels, .. } => kernels.get(at.run),
            LaunchTask::Host { .. } => None,
        }
    }

    /// Returns the kernels of all devices, each with its device, and then the kernels of the largest logits.
    pub(super) fn all_runs(&self) -> impl Iterator<Item = (usize, &KernelRun)> {
        self.runs()
            .chain(self.best.iter().map(|b| (b.device, &b.run)))
    }

    fn runs(&self) -> impl Iterator<Item = (usize, &KernelRun)> {
        let tasks = self.tasks.iter().flatten();
        let runs = tasks.filter_map(move |task| match task {
            LaunchTask::Device {
                device, kernels, ..
            } => Some((*device, kernels)),
            LaunchTask::Host { .. } => None,
        });
        runs.flat_map(|(d, runs)| runs.iter().map(move |run| (d, run)))
    }

    pub(super) fn kernels(&self) -> impl Iterator<Item = (usize, &Kernel)> {
        let runs = self.all_runs();
        runs.flat_map(|(d, run)| run.kernels.iter().flatten().map(move |k| (d, k)))
    }

    pub(super) fn kernels_of_shape(&self, shape: usize) -> impl Iterator<Item = (usize, &Kernel)> {
        let runs = self.runs();
        runs.filter_map(move |(d, run)| Some((d, run.kernels.get(shape)?.as_ref()?)))
    }

    /// Returns the slots that leave the arenas.
    fn exchanged_slots(
        &self,
        program: &Program,
        plan: &ExchangePlan,
    ) -> BTreeMap<usize, ExchangeSlot> {
        let moved = |slot: &usize| {
            self.staged.contains_key(slot)
                || self.terms.contains_key(slot)
                || self.halves.contains(slot)
                || self.sizes.contains_key(slot)
                || self.scratch.contains_key(slot)
                || self.best_slots.contains_key(slot)
        };
        let own = (0..self.slots.len()).filter(|slot| !moved(slot));
        own.filter_map(|slot| Some((slot, plan.slot(program, self.slots[slot])?)))
            .collect()
    }

    fn add_slots(&mut self, of: &TaskKernel) {
        for binding in of.operands.iter().chain(&of.results) {
            match binding.memory {
                MemoryKind::Own => {}
                MemoryKind::Staging(part) => {
                    self.staged.insert(self.slots.len(), part);
                }
                MemoryKind::Terms(slot) => {
                    self.terms.insert(self.slots.len(), slot);
                }
                MemoryKind::Halves => {
                    self.halves.insert(self.slots.len());
                }
            }
            self.slots.push(binding.value);
        }
        if let Some(x) = of.halves {
            self.halves.insert(self.slots.len());
            self.slots.push(x);
        }
    }

    fn device_task(
        &mut self,
        program: &Program,
        task: &Task,
        (device, info): (usize, &DeviceInfo),
        options: CudaOptions,
    ) -> Result<LaunchTask, ExecError> {
        let mut kernels = Vec::new();
        for of in &task.ops {
            let of_shape = |shape: &BatchShape| kernel(program, of, shape, info, options);
            let each: Result<Vec<Option<Kernel>>, ExecError> =
                program.shapes.iter().map(of_shape).collect();
            let each = each?;
            if each.iter().all(Option::is_none) {
                continue;
            }
            let start = self.slots.len();
            self.add_slots(of);
            let made = of
                .results
                .iter()
                .filter(|r| matches!(r.memory, MemoryKind::Terms(_)));
            for terms in made {
                let column = |k| Terms::of(k).column;
                let bytes = activation_bytes(program, terms.value, column)?;
                self.terms_bytes[device] = self.terms_bytes[device].max(bytes);
            }
            if matches!(of.op, KernelOp::Halves(_)) {
                let column = |k| Halves::of(k).column;
                let bytes = activation_bytes(program, of.results[0].value, column)?;
                self.halves_bytes[device] = self.halves_bytes[device].max(bytes);
            }
            if let KernelOp::Op(op) | KernelOp::CollectivePart(op, _) = &of.op
                && let Some(size) = size_of(op)
            {
                self.sizes.insert(self.slots.len(), size.clone());
                self.slots.push(of.results[0].value);
            }
            self.need_scratch(device, &each, of);
            kernels.push(KernelRun {
                kernels: each,
                slots: start..self.slots.len(),
                operands: of.operands.len(),
                results: of.results.len(),
                weights: weight_reads(program, of)?,
            });
        }
        Ok(LaunchTask::Device {
            device,
            stage: task.stage,
            kernels,
        })
    }

    /// Adds the kernels that find the largest logits on a device.
    fn best_of_device(
        &mut self,
        program: &Program,
        (device, info): (usize, &DeviceInfo),
        options: CudaOptions,
    ) -> Result<(), ExecError> {
        let parts = self.best_output.iter().flat_map(|of| of.parts.iter());
        let parts: Vec<(usize, OutputPart)> = parts.cloned().enumerate().collect();
        for (part, of) in parts.into_iter().filter(|(_, of)| of.device == device) {
            let kernels: Result<Vec<Option<Kernel>>, ExecError> = program
                .shapes
                .iter()
                .map(|shape| best_kernel(program, &of, shape, info, options).map(Some))
                .collect();
            let start = self.slots.len();
            self.best_slots.insert(start + 1, part);
            self.slots.extend([of.value, of.value]);
            let run = KernelRun {
                kernels: kernels?,
                slots: start..self.slots.len(),
                operands: 1,
                results: 1,
                weights: vec![WeightRead::default(); program.shapes.len()],
            };
            self.best.push(BestRun { device, run });
        }
        Ok(())
    }

    fn need_scratch(&mut self, device: usize, kernels: &[Option<Kernel>], of: &TaskKernel) {
        let needed = kernels.iter().flatten().map(|k| k.scratch);
        let needed = needed.fold(Scratch::default(), Scratch::max);
        if needed.is_none() {
            return;
        }
        self.scratch_bytes[device] = self.scratch_bytes[device].max(needed);
        for part in [ScratchPart::Counters, ScratchPart::Parts] {
            self.scratch.insert(self.slots.len(), part);
            self.slots.push(of.results[0].value);
        }
    }

    fn host_task(&mut self, task: &Task) -> Result<LaunchTask, ExecError> {
        let [of] = task.ops.as_slice() else {
            return Err(malformed("a launch on the host has several ops or none"));
        };
        let KernelOp::Op(op) = &of.op else {
            return Err(malformed("the host cannot run fused ops or collectives"));
        };
        let start = self.slots.len();
        self.add_slots(of);
        let values = |binding: &[Binding]| binding.iter().map(|s| s.value).collect();
        let (operands, results) = (values(&of.operands), values(&of.results));
        self.hosted.push((op.clone(), operands, results));
        Ok(LaunchTask::Host {
            op: self.hosted.len() - 1,
            stage: task.stage,
            slots: start..self.slots.len(),
        })
    }
}

/// Returns the bytes of activations in another form in the largest batch. `column` gives the bytes of a column.
fn activation_bytes(
    program: &Program,
    x: Value,
    column: impl Fn(usize) -> usize,
) -> Result<u64, ExecError> {
    let mut most = 0;
    for shape in &program.shapes {
        let [k, columns @ ..] = max_sizes(program, x, &shape.most)?;
        let mut sizes = columns.iter();
        let bytes = sizes.try_fold(column(k) as u64, |n, size| n.checked_mul(*size as u64));
        let bytes = bytes.ok_or_else(|| ExecError::Size {
            what: format!("of the activations {x} in another form"),
        })?;
        most = most.max(bytes);
    }
    Ok(most)
}

/// True if a kernel computes no elements, for example because the device has no share of a tensor. A collective still
/// runs, because other devices wait for it.
fn is_empty(program: &Program, of: &TaskKernel) -> Result<bool, ExecError> {
    if matches!(of.op, KernelOp::CollectivePart(..)) {
        return Ok(false);
    }
    for shape in &program.shapes {
        for result in &of.results {
            if !max_sizes(program, result.value, &shape.most)?.contains(&0) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Returns the weights in planes that a product reads, by batch shape. Of a stack of experts, a product reads as many as
/// there are entries, at most all.
fn weight_reads(program: &Program, of: &TaskKernel) -> Result<Vec<WeightRead>, ExecError> {
    let read = |shape: &BatchShape| -> Result<WeightRead, ExecError> {
        let (mut entries, mut all) = (u64::MAX, WeightRead::default());
        let sizes = |binding: &Binding| max_sizes(program, binding.value, &shape.most);
        for ids in of.operands.iter().filter(|b| {
            let dtype = program.graph.value(b.value).ty.dtype;
            dtype == DType::I32 && b.memory == MemoryKind::Own
        }) {
            entries = sizes(ids)?.iter().map(|n| *n as u64).product();
        }
        for weight in &of.operands {
            if format_of(program, weight.value) != Planes::FORMAT {
                continue;
            }
            let dims = sizes(weight)?.map(|n| n as u64);
            let row = program.graph.value(weight.value).ty.dtype.bytes(dims[0]);
            let stacks = (dims[2] * dims[3]).min(entries);
            all.bytes += row.unwrap_or(0) * dims[1] * stacks;
            all.elements += dims[0] * dims[1] * stacks;
        }
        Ok(all)
    };
    if let KernelOp::Op(Op::GetRows(_)) | KernelOp::ExpertOrder(_) | KernelOp::SumEntries(_) = of.op
    {
        return Ok(vec![WeightRead::default(); program.shapes.len()]);
    }
    program.shapes.iter().map(read).collect()
}

fn kernel(
    program: &Program,
    of: &TaskKernel,
    shape: &BatchShape,
    info: &DeviceInfo,
    options: CudaOptions,
) -> Result<Option<Kernel>, ExecError> {
    let tensors = |binding: &[Binding]| -> Result<Vec<Tensor>, ExecError> {
        let tensor = |binding: &Binding| {
            Ok(Tensor {
                dtype: program.graph.value(binding.value).ty.dtype,
                max_dims: max_sizes(program, binding.value, &shape.most)?,
                format: format_of(program, binding.value),
            })
        };
        binding.iter().map(tensor).collect()
    };
    let (operands, results) = (tensors(&of.operands)?, tensors(&of.results)?);
    let request = Request {
        operands: &operands,
        results: &results,
        options: options.options,
        multiprocessors: info.multiprocessors,
    };
    let is_needed = match &of.op {
        KernelOp::Halves(form) => reads_halves(*form, &operands[0]),
        // Tokens are axis 1 of the indices.
        KernelOp::ExpertOrder(_) => orders_experts(&operands[1]),
        KernelOp::SumEntries(_) => orders_experts(&operands[2]),
        _ => true,
    };
    if !is_needed {
        return Ok(None);
    }
    let chosen = match &of.op {
        KernelOp::CollectivePart(op, rank) => select_collective(op, *rank, &request),
        KernelOp::Op(op) => select(op, &request),
        KernelOp::Fused(fused) => select_fused(fused, &request),
        KernelOp::Terms => select_terms(&request),
        KernelOp::Halves(_) => select_halves(&request),
        KernelOp::ExpertOrder(op) => select_expert_order(op, &request),
        KernelOp::SumEntries(fused) => select_sum_entries(fused, &request),
    };
    chosen.map(Some).map_err(|e| ExecError::NoKernel {
        what: e.to_string(),
    })
}

fn best_kernel(
    program: &Program,
    part: &OutputPart,
    shape: &BatchShape,
    info: &DeviceInfo,
    options: CudaOptions,
) -> Result<Kernel, ExecError> {
    let dtype = program.graph.value(part.value).ty.dtype;
    let operand = Tensor::new(dtype, max_sizes(program, part.value, &shape.most)?);
    let request = Request {
        operands: &[operand],
        results: &[],
        options: options.options,
        multiprocessors: info.multiprocessors,
    };
    let chosen = select_best_logits(part.first, &request);
    chosen.map_err(|e| ExecError::NoKernel {
        what: e.to_string(),
    })
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
