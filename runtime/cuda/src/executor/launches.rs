//! The launches of a program, each with the kernels that it takes.

use std::collections::BTreeMap;
use std::ops::Range;

use tpc_cpu::host::{most, named, size_of, work};
use tpc_ir::program::{BatchShape, Program};
use tpc_ir::{Dim, Launch, Op, Value};
use tpc_runtime::ExecError;

use super::memory::device;
use super::options::CudaOptions;
use crate::driver::DeviceInfo;
use crate::kernels::{Kernel, Request, Tensor, select, select_collective};

/// What a launch does on one of its places.
#[derive(Debug)]
pub(super) enum Task {
    /// Kernels one after another.
    Device { device: usize, kernels: Vec<Run> },
    /// An op of the host, by its number among [`Launches::hosted`].
    Host { op: usize, slots: Range<usize> },
}

/// A kernel with its views.
#[derive(Debug)]
pub(super) struct Run {
    /// The kernel for each shape of batches.
    pub(super) kernels: Vec<Kernel>,
    /// The slots of its views.
    pub(super) slots: Range<usize>,
}

/// The launches of a program, and the values in the slots that they are given.
#[derive(Debug, Default)]
pub(super) struct Launches {
    /// Per launch, its tasks: one per participant.
    pub(super) tasks: Vec<Vec<Task>>,
    pub(super) slots: Vec<Value>,
    /// The slots that hold no view but a size.
    pub(super) sizes: BTreeMap<usize, Dim>,
    /// Per device, the slots of its launches.
    pub(super) of_device: Vec<Range<usize>>,
    /// The ops of the host.
    pub(super) hosted: Vec<(Op, Vec<Value>, Vec<Value>)>,
    /// Which device reaches the memory of which other.
    pub(super) peers: Vec<(usize, usize)>,
}

/// A task before slots are dealt: the place that runs it, and per kernel its op and its values.
struct Wanted {
    place: Option<usize>,
    ops: Vec<WantedKernel>,
}

struct WantedKernel {
    op: Op,
    /// The number among the participants, for a collective.
    rank: Option<usize>,
    operands: Vec<Value>,
    results: Vec<Value>,
}

impl Launches {
    /// # Errors
    /// When an op has no kernel, or a size no value.
    pub(super) fn new(
        program: &Program,
        infos: &[DeviceInfo],
        options: CudaOptions,
    ) -> Result<Launches, ExecError> {
        let devices = program.graph.devices.len();
        if infos.len() < devices {
            return Err(ExecError::Parameter {
                what: format!(
                    "the program is for {devices} devices: {} are here",
                    infos.len()
                ),
            });
        }
        let mut out = Launches {
            tasks: program.launches.iter().map(|_| Vec::new()).collect(),
            ..Launches::default()
        };
        let mut wanted: Vec<(Launch, Wanted)> = Vec::new();
        for i in 0..program.launches.len() {
            let launch = Launch::new(i);
            let at = |e: ExecError| e.at(|| named(program, launch));
            let tasks = out.wanted(program, launch).map_err(at)?;
            wanted.extend(tasks.into_iter().map(|task| (launch, task)));
        }
        // The slots of a device are one after another, and those of the host come last.
        for place in (0..devices).map(Some).chain([None]) {
            let start = out.slots.len();
            for (launch, task) in wanted.iter().filter(|(_, t)| t.place == place) {
                let at = |e: ExecError| e.at(|| named(program, *launch));
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
        out.peers.sort_unstable();
        out.peers.dedup();
        Ok(out)
    }

    /// The tasks of a launch.
    fn wanted(&mut self, program: &Program, launch: Launch) -> Result<Vec<Wanted>, ExecError> {
        let (op, operands, results) = work(program, launch)?;
        let place_of = |value: Value| -> Result<Option<usize>, ExecError> {
            Ok(device(program.graph.value(value).place)?.map(|d| d.0 as usize))
        };
        if op.is_collective() {
            let places: Result<Vec<_>, ExecError> = operands.iter().map(|v| place_of(*v)).collect();
            let places = places?;
            return places
                .iter()
                .enumerate()
                .map(|(rank, place)| {
                    let own = place.ok_or_else(|| malformed("the host takes part in it"))?;
                    let others = places.iter().flatten().filter(|d| **d != own);
                    self.peers.extend(others.map(|other| (own, *other)));
                    let kernel = WantedKernel {
                        op: op.clone(),
                        rank: Some(rank),
                        operands: operands.clone(),
                        results: vec![results[rank]],
                    };
                    Ok(Wanted {
                        place: Some(own),
                        ops: vec![kernel],
                    })
                })
                .collect();
        }
        let places = &program.launch(launch).places;
        let mut place = match places.as_slice() {
            [place] => device(*place)?.map(|d| d.0 as usize),
            _ => return Err(malformed("it has several places")),
        };
        if let (Op::Copy(_), Some(&from)) = (&op, operands.first()) {
            // Devices push what they copy; the host's memory is in reach of all.
            let from = place_of(from)?;
            if let (Some(from), Some(to)) = (from, place)
                && from != to
            {
                self.peers.push((from, to));
            }
            place = from.or(place);
        }
        let mut ops = Vec::new();
        let mut reads = operands.clone();
        let moved = op.is_update() && program.home(operands[0]) != program.home(results[0]);
        if moved && place.is_some() {
            ops.push(WantedKernel {
                op: Op::Copy(tpc_ir::op::Copy),
                rank: None,
                operands: vec![operands[0]],
                results: vec![results[0]],
            });
            reads[0] = results[0];
        }
        ops.push(WantedKernel {
            op,
            rank: None,
            operands: reads,
            results,
        });
        Ok(vec![Wanted { place, ops }])
    }

    fn device_task(
        &mut self,
        program: &Program,
        task: &Wanted,
        (device, info): (usize, &DeviceInfo),
        options: CudaOptions,
    ) -> Result<Task, ExecError> {
        let mut kernels = Vec::new();
        for wanted in &task.ops {
            let of_shape = |shape: &BatchShape| kernel(program, wanted, shape, info, options);
            let each: Result<Vec<Kernel>, ExecError> =
                program.shapes.iter().map(of_shape).collect();
            let start = self.slots.len();
            self.slots
                .extend(wanted.operands.iter().chain(&wanted.results));
            if let Some(size) = size_of(&wanted.op) {
                self.sizes.insert(self.slots.len(), size.clone());
                self.slots.push(wanted.results[0]);
            }
            kernels.push(Run {
                kernels: each?,
                slots: start..self.slots.len(),
            });
        }
        Ok(Task::Device { device, kernels })
    }

    fn host_task(&mut self, task: &Wanted) -> Result<Task, ExecError> {
        let [wanted] = task.ops.as_slice() else {
            return Err(malformed("the host runs one op at a time"));
        };
        let start = self.slots.len();
        self.slots
            .extend(wanted.operands.iter().chain(&wanted.results));
        let (operands, results) = (wanted.operands.clone(), wanted.results.clone());
        self.hosted.push((wanted.op.clone(), operands, results));
        Ok(Task::Host {
            op: self.hosted.len() - 1,
            slots: start..self.slots.len(),
        })
    }
}

/// The kernel for batches of a shape.
fn kernel(
    program: &Program,
    wanted: &WantedKernel,
    shape: &BatchShape,
    info: &DeviceInfo,
    options: CudaOptions,
) -> Result<Kernel, ExecError> {
    let tensors = |values: &[Value]| -> Result<Vec<Tensor>, ExecError> {
        let tensor = |v: &Value| {
            Ok(Tensor {
                dtype: program.graph.value(*v).ty.dtype,
                most: most(program, *v, &shape.most)?,
            })
        };
        values.iter().map(tensor).collect()
    };
    let (operands, results) = (tensors(&wanted.operands)?, tensors(&wanted.results)?);
    let request = Request {
        operands: &operands,
        results: &results,
        options: options.options,
        multiprocessors: info.multiprocessors,
    };
    let chosen = match wanted.rank {
        Some(rank) => select_collective(&wanted.op, rank, &request),
        None => select(&wanted.op, &request),
    };
    chosen.map_err(|e| ExecError::NoKernel {
        what: e.to_string(),
    })
}

fn malformed(what: &str) -> ExecError {
    ExecError::Malformed { what: what.into() }
}
