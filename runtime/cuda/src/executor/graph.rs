//! Builds CUDA graphs from the queues of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tpc_ir::program::{Phase, Program, Step};
use tpc_ir::{Launch, Place};
use tpc_runtime::host::launch_label;
use tpc_runtime::{ExecError, Options};

use super::accesses::Accesses;
use super::constants::Constants;
use super::frames::Frames;
use super::host_ops::HostLaunches;
use super::kernel_node::kernel_node;
use super::launches::{KernelRun, LaunchTask, Launches};
use super::memory::{Arenas, Faults, error};
use super::modules::{PrebuiltCode, modules};
use super::node_order::NodeOrder;
use super::options::LaunchMode;
use super::phase_graph::{KernelPosition, OutputGraphs, PhaseGraph, PhaseGraphs, split};
use super::programmatic_edges::ProgrammaticEdges;
use crate::driver::{Device, Driver, Function, GraphSpec, HostError, KernelNode, Work};
use crate::kernels::Kernel;

/// The names of a module and a kernel.
type Entry = (&'static str, String);

fn entry(kernel: &Kernel) -> Entry {
    (kernel.instance.module(), kernel.instance.entry())
}

struct GraphBuilder<'a> {
    program: &'a Program,
    launches: &'a Launches,
    frames: &'a Frames,
    faults: &'a Faults,
    arenas: &'a Arenas,
    hosted: &'a Arc<Mutex<HostLaunches>>,
    functions: Vec<BTreeMap<Entry, Function>>,
    constants: Vec<(Constants, u64)>,
    edges: ProgrammaticEdges,
    /// The kernel of each node of the graph.
    positions: Vec<Option<KernelPosition>>,
    /// The launch of each node of the graph.
    launch_of: Vec<Launch>,
    order: NodeOrder,
}

pub(super) fn graphs(
    program: &Program,
    launches: &Launches,
    (frames, faults, arenas): (&Frames, &Faults, &Arenas),
    hosted: &Arc<Mutex<HostLaunches>>,
    driver: &mut impl Driver,
    code: (&PrebuiltCode, Options),
    (edges, mode): (ProgrammaticEdges, LaunchMode),
) -> Result<Vec<Vec<PhaseGraphs>>, ExecError> {
    let mut builder = GraphBuilder {
        program,
        launches,
        frames,
        faults,
        arenas,
        hosted,
        functions: vec![BTreeMap::new(); launches.of_device.len()],
        constants: Vec::new(),
        edges,
        positions: Vec::new(),
        launch_of: Vec::new(),
        order: NodeOrder::default(),
    };
    builder.load(driver, code)?;
    let mut out = Vec::new();
    for shape in 0..program.shapes.len() {
        let mut of_shape = Vec::new();
        for (p, phase) in program.phases.iter().enumerate() {
            let mut spec = builder.spec(phase, shape)?;
            let mut output = None;
            if mode == LaunchMode::Whole {
                (spec, output) = builder.split_output(spec, (p, shape), driver)?;
            }
            let main = PhaseGraph::new(spec, &builder.positions, mode, driver);
            let main = main.map_err(error)?;
            of_shape.push(PhaseGraphs { main, output });
        }
        out.push(of_shape);
    }
    Ok(out)
}

#[derive(Clone, Debug, Default)]
struct QueueProgress {
    /// The nodes that the next node waits for.
    last: Vec<usize>,
    /// The value of `last` after each step.
    after: Vec<Vec<usize>>,
}

impl GraphBuilder<'_> {
    fn load(
        &mut self,
        driver: &mut impl Driver,
        (prebuilt, options): (&PrebuiltCode, Options),
    ) -> Result<(), ExecError> {
        let mut constants: Vec<Constants> = Vec::new();
        constants.resize_with(self.launches.of_device.len(), Constants::default);
        let mut needed: Vec<BTreeSet<Entry>> = vec![BTreeSet::new(); constants.len()];
        for (device, kernel) in self.launches.kernels() {
            constants[device].add(&kernel.params);
            needed[device].insert(entry(kernel));
        }
        for module in modules(self.program, options)? {
            let module = prebuilt.with_code(module);
            for (d, needed) in needed.iter().enumerate() {
                let mut mine = needed.iter().filter(|(m, _)| *m == module.name).peekable();
                if mine.peek().is_none() {
                    continue;
                }
                let loaded = driver.load(Device(d as u32), &module).map_err(error)?;
                for entry in mine {
                    let function = driver.function(loaded, &entry.1).map_err(error)?;
                    self.functions[d].insert(entry.clone(), function);
                }
            }
        }
        for (d, constants) in constants.into_iter().enumerate() {
            let address = constants.write(Device(d as u32), driver)?;
            self.constants.push((constants, address));
        }
        Ok(())
    }

    fn spec(&mut self, phase: &Phase, shape: usize) -> Result<GraphSpec, ExecError> {
        let mut spec = GraphSpec::default();
        self.positions.clear();
        self.launch_of.clear();
        self.order = NodeOrder::new(phase.queues.len());
        let mut queues = vec![QueueProgress::default(); phase.queues.len()];
        let mut moved = true;
        while moved {
            moved = false;
            for q in 0..queues.len() {
                while self.step(phase, q, (&mut queues, shape), &mut spec)? {
                    moved = true;
                }
            }
        }
        let ended = |(queue, done): (&tpc_ir::program::Queue, &QueueProgress)| {
            queue.steps.len() == done.after.len()
        };
        match phase.queues.iter().zip(&queues).all(ended) {
            true => Ok(spec),
            false => Err(ExecError::Malformed {
                what: "the queues deadlock".into(),
            }),
        }
    }

    /// Moves the launches that bring the output to the host to a graph of their own. A third graph finds the largest
    /// elements instead.
    fn split_output(
        &mut self,
        spec: GraphSpec,
        (phase, shape): (usize, usize),
        driver: &mut impl Driver,
    ) -> Result<(GraphSpec, Option<OutputGraphs>), ExecError> {
        let launches = self.launches;
        let output = launches.best_output.as_ref();
        let Some(output) = output.filter(|of| of.phase == phase) else {
            return Ok((spec, None));
        };
        let (Some(first), false) = (output.tail.first().copied(), launches.best.is_empty()) else {
            return Ok((spec, None));
        };
        let moves = |node: usize| output.tail.contains(&self.launch_of[node]);
        let [main, all] = match split(spec, moves) {
            Ok(parts) => parts,
            Err(whole) => return Ok((whole, None)),
        };
        let mut best = GraphSpec::default();
        for of in &launches.best {
            if let Some(node) = self.kernel(of.device, first, (&of.run, shape)) {
                best.push("the largest logits", Work::Kernel(node), &[]);
            }
        }
        let [all, best] = [all, best].map(|spec| driver.instantiate(spec).map_err(error));
        let (all, best) = (all?, best?);
        Ok((main, Some(OutputGraphs { all, best })))
    }

    fn step(
        &mut self,
        phase: &Phase,
        q: usize,
        (queues, shape): (&mut [QueueProgress], usize),
        spec: &mut GraphSpec,
    ) -> Result<bool, ExecError> {
        let Some(step) = phase.queues[q].steps.get(queues[q].after.len()) else {
            return Ok(false);
        };
        let launch = match *step {
            Step::Wait { queue, steps } => {
                if queues[queue].after.len() < steps {
                    return Ok(false);
                }
                if let Some(before) = steps.checked_sub(1) {
                    let nodes = queues[queue].after[before].clone();
                    join(&mut queues[q].last, &nodes);
                }
                let last = queues[q].last.clone();
                queues[q].after.push(last);
                return Ok(true);
            }
            Step::Launch(launch) => launch,
        };
        let mut meeting = Vec::new();
        for place in &self.program.launch(launch).places {
            let at = phase.queues.iter().position(|q| q.place == *place);
            let Some(at) = at else { return Ok(false) };
            if phase.queues[at].steps.get(queues[at].after.len()) != Some(step) {
                return Ok(false);
            }
            meeting.push(at);
        }
        let lasts = meeting.iter().map(|m| queues[*m].last.clone()).collect();
        let ends = self.nodes((launch, shape), (phase, &meeting), lasts, spec);
        let mut all_ends = Vec::new();
        ends.iter().for_each(|own| join(&mut all_ends, own));
        for (m, own) in meeting.into_iter().zip(ends) {
            // Waits of other queues are for all participants.
            queues[m].after.push(all_ends.clone());
            queues[m].last = own;
        }
        Ok(true)
    }

    /// Adds the nodes of a launch after the last nodes of each queue in `meeting`. Returns the new last nodes.
    fn nodes(
        &mut self,
        (launch, shape): (Launch, usize),
        (phase, meeting): (&Phase, &[usize]),
        mut lasts: Vec<Vec<usize>>,
        spec: &mut GraphSpec,
    ) -> Vec<Vec<usize>> {
        let launches = self.launches;
        let label = launch_label(self.program, launch);
        for stage in 0..2 {
            let mut before = Vec::new();
            lasts.iter().for_each(|own| join(&mut before, own));
            for (t, task) in launches.tasks[launch.index()].iter().enumerate() {
                let m = participant(task, phase, meeting);
                let queue = meeting[m];
                let mut last = match stage == 0 && self.reads_own(launch, task) {
                    true => lasts[m].clone(),
                    false => before.clone(),
                };
                match task {
                    LaunchTask::Device {
                        device,
                        stage: own,
                        kernels,
                    } if *own == stage => {
                        for (r, run) in kernels.iter().enumerate() {
                            let position = KernelPosition {
                                launch,
                                device: *device,
                                task: t,
                                run: r,
                            };
                            let of = (queue, meeting.len() > 1);
                            self.kernel_node((&label, position), (run, shape), of, &mut last, spec);
                        }
                    }
                    LaunchTask::Host { op, slots } if stage == 0 => {
                        let (_, operands, results) = &launches.hosted[*op];
                        let counts = (operands.len(), results.len());
                        let of = (self.program, launches);
                        let accesses = Accesses::of(of, slots.clone(), counts, shape);
                        self.order.push(queue, &accesses, &mut last);
                        let work = host_work(self.hosted, *op);
                        last = vec![spec.push(label.clone(), work, &last)];
                        self.launch_of.push(launch);
                        self.positions.push(None);
                    }
                    LaunchTask::Device { .. } | LaunchTask::Host { .. } => continue,
                }
                lasts[m] = last;
            }
        }
        lasts
    }

    /// True if a task is the copy of a collective's operand to the host, and the device's own queue made the operand. The
    /// copy need not wait for other queues.
    fn reads_own(&self, launch: Launch, task: &LaunchTask) -> bool {
        let (
            LaunchTask::Device {
                kernels, device, ..
            },
            true,
        ) = (task, self.program.launch(launch).places.len() > 1)
        else {
            return false;
        };
        let [copy] = kernels.as_slice() else {
            return false;
        };
        if !self
            .launches
            .staged
            .contains_key(&(copy.slots.start + copy.operands))
        {
            return false;
        }
        let own = Place::Device(tpc_ir::Device::new(*device));
        let mut value = self.launches.slots[copy.slots.start];
        let graph = &self.program.graph;
        loop {
            let inst = graph.value(value).def.0;
            let mut launches = self.program.launches.iter();
            if let Some(made_by) = launches.find(|l| l.covered_insts().contains(&inst)) {
                return made_by.places.contains(&own);
            }
            // The value may be a view.
            match graph.inst(inst).operands.first() {
                Some(operand) => value = *operand,
                None => return false,
            }
        }
    }

    /// Adds a kernel after the nodes in `last`, and makes it the last node.
    fn kernel_node(
        &mut self,
        (label, position): (&str, KernelPosition),
        (run, shape): (&KernelRun, usize),
        (queue, is_shared): (usize, bool),
        last: &mut Vec<usize>,
        spec: &mut GraphSpec,
    ) {
        let KernelPosition { launch, device, .. } = position;
        let Some(node) = self.kernel(device, launch, (run, shape)) else {
            return;
        };
        let of = (self.program, self.launches);
        let counts = (run.operands, run.results);
        let accesses = Accesses::of(of, run.slots.clone(), counts, shape);
        self.order.push(queue, &accesses, last);
        if is_shared {
            self.order.leave_open(accesses);
        }
        let pushed = spec.push(label, Work::Kernel(node), last);
        self.launch_of.push(launch);
        self.positions.push(Some(position));
        self.edges.kernel(device, last, spec);
        *last = vec![pushed];
    }

    fn kernel(
        &mut self,
        device: usize,
        launch: Launch,
        (run, shape): (&KernelRun, usize),
    ) -> Option<KernelNode> {
        let kernel = run.kernels[shape].as_ref()?;
        let (constants, address) = &mut self.constants[device];
        let views = self.frames.slot(device, run.slots.start);
        let params = *address + constants.add(&kernel.params);
        let addresses = [views, params, self.faults.address(device)];
        let function = self.functions[device][&entry(kernel)];
        let number = launch.index() as u32;
        let slots = &self.launches.slots[run.slots.clone()];
        let address = |operand: usize| self.arenas.of_weight(self.program, slots[operand]);
        Some(kernel_node(kernel, function, addresses, number, address))
    }
}

/// Returns the queue of a task, as an index of `meeting`.
fn participant(task: &LaunchTask, phase: &Phase, meeting: &[usize]) -> usize {
    let own = match task {
        LaunchTask::Device { device, .. } => Place::Device(tpc_ir::Device::new(*device)),
        LaunchTask::Host { .. } => Place::Host,
    };
    let found = meeting.iter().position(|q| phase.queues[*q].place == own);
    // Another device may execute a copy.
    found.unwrap_or(0)
}

fn host_work(hosted: &Arc<Mutex<HostLaunches>>, op: usize) -> Work {
    let hosted = Arc::clone(hosted);
    Work::Host(Box::new(move || -> Result<(), HostError> {
        let mut hosted = hosted.lock().map_err(|_| "a host op panicked")?;
        hosted.run(op).map_err(Into::into)
    }))
}

fn join(nodes: &mut Vec<usize>, more: &[usize]) {
    for node in more {
        if !nodes.contains(node) {
            nodes.push(*node);
        }
    }
}
