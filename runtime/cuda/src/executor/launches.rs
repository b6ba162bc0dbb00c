use std::collections::BTreeMap;
use std::ops::Range;

use tpc_cpu::host::size_of;
use tpc_ir::program::{BatchShape, Program};
use tpc_ir::{Dim, Launch, Op, Value};
use tpc_runtime::ExecError;
use tpc_runtime::host::{launch_label, max_sizes};

use super::options::CudaOptions;
use super::phase_graph::KernelPosition;
use super::roles::format_of;
use super::task::{Binding, KernelOp, MemoryKind, StagingBuffer, StagingPart, Task, TaskKernel};
use super::task_builder::{Reach, TaskBuilder};
use super::term_slot::TermSlot;
use crate::driver::DeviceInfo;
use crate::kernels::{
    Kernel, Request, Scratch, Tensor, Terms, select, select_collective, select_fused, select_terms,
};

#[derive(Debug)]
pub(super) enum LaunchTask {
    /// A sequence of kernels. Stage 1 starts after stage 0 has ended on all devices.
    Device {
        device: usize,
        stage: usize,
        kernels: Vec<KernelRun>,
    },
    /// A host op: an index into [`Launches::hosted`].
    Host { op: usize, slots: Range<usize> },
}

#[derive(Debug)]
pub(super) struct KernelRun {
    pub(super) kernels: Vec<Kernel>,
    /// The slots of the operands, of the results, of a size, and of scratch memory.
    pub(super) slots: Range<usize>,
    /// The number of operands.
    pub(super) operands: usize,
    /// The number of results.
    pub(super) results: usize,
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
    /// The bytes of each of the two buffers for quantised activations, by device.
    pub(super) terms_bytes: Vec<u64>,
    pub(super) scratch: BTreeMap<usize, ScratchPart>,
    /// The scratch memory of each device, which launches use one after another.
    pub(super) scratch_bytes: Vec<Scratch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScratchPart {
    Counters,
    Parts,
}

impl Launches {
    /// Selects the kernels of all launches. Returns an error if an op is not supported or a size is unknown.
    pub(super) fn new(
        program: &Program,
        infos: &[DeviceInfo],
        reach: &mut Reach<'_>,
        options: CudaOptions,
    ) -> Result<Launches, ExecError> {
        let devices = program.graph.devices.len();
        let mut out = Launches {
            tasks: program.launches.iter().map(|_| Vec::new()).collect(),
            terms_bytes: vec![0; devices],
            scratch_bytes: vec![Scratch::default(); devices],
            ..Launches::default()
        };
        let mut builder = TaskBuilder::new(program)?;
        let mut tasks: Vec<(Launch, Task)> = Vec::new();
        for i in 0..program.launches.len() {
            let launch = Launch::new(i);
            let at = |e: ExecError| e.at(|| launch_label(program, launch));
            for mut task in builder.tasks(program, launch, reach).map_err(at)? {
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
            if place.is_some() {
                out.of_device.push(start..out.slots.len());
            }
        }
        out.staging = builder.staging;
        Ok(out)
    }

    /// Returns the kernel at a position.
    pub(super) fn kernel_run(&self, at: KernelPosition) -> Option<&KernelRun> {
        let tasks = self.tasks.get(at.launch.index())?;
        match tasks.get(at.task)? {
            LaunchTask::Device { kernels, .. } => kernels.get(at.run),
            LaunchTask::Host { .. } => None,
        }
    }

    pub(super) fn kernels(&self) -> impl Iterator<Item = (usize, &Kernel)> {
        let tasks = self.tasks.iter().flatten();
        let runs = tasks.filter_map(move |task| match task {
            LaunchTask::Device {
                device, kernels, ..
            } => Some((*device, kernels)),
            LaunchTask::Host { .. } => None,
        });
        runs.flat_map(|(d, runs)| {
            runs.iter()
                .flat_map(move |r| r.kernels.iter().map(move |k| (d, k)))
        })
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
            }
            self.slots.push(binding.value);
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
            let each: Result<Vec<Kernel>, ExecError> =
                program.shapes.iter().map(of_shape).collect();
            let each = each?;
            let start = self.slots.len();
            self.add_slots(of);
            let made = of
                .results
                .iter()
                .filter(|r| matches!(r.memory, MemoryKind::Terms(_)));
            for terms in made {
                self.need_terms(program, device, terms.value)?;
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
            });
        }
        Ok(LaunchTask::Device {
            device,
            stage: task.stage,
            kernels,
        })
    }

    fn need_scratch(&mut self, device: usize, kernels: &[Kernel], of: &TaskKernel) {
        let needed = kernels.iter().map(|k| k.scratch);
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

    fn need_terms(&mut self, program: &Program, device: usize, x: Value) -> Result<(), ExecError> {
        for shape in &program.shapes {
            let [k, columns @ ..] = max_sizes(program, x, &shape.most)?;
            let column = Terms::of(k).column as u64;
            let mut sizes = columns.iter();
            let bytes = sizes.try_fold(column, |n, size| n.checked_mul(*size as u64));
            let bytes = bytes.ok_or_else(|| ExecError::Size {
                what: format!("of the quantised form of {x}"),
            })?;
            self.terms_bytes[device] = self.terms_bytes[device].max(bytes);
        }
        Ok(())
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
            slots: start..self.slots.len(),
        })
    }
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

fn kernel(
    program: &Program,
    of: &TaskKernel,
    shape: &BatchShape,
    info: &DeviceInfo,
    options: CudaOptions,
) -> Result<Kernel, ExecError> {
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
    let chosen = match &of.op {
        KernelOp::CollectivePart(op, rank) => select_collective(op, *rank, &request),
        KernelOp::Op(op) => select(op, &request),
        KernelOp::Fused(fused) => select_fused(fused, &request),
        KernelOp::Terms => select_terms(&request),
    };
    chosen.map_err(|e| ExecError::NoKernel {
        what: e.to_string(),
    })
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
