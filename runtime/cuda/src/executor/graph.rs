//! Builds CUDA graphs from the queues of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tpc_ir::Launch;
use tpc_ir::program::{Phase, Program};
use tpc_runtime::host::launch_label;
use tpc_runtime::{ExecError, Options};

use super::constants::Constants;
use super::frames::Frames;
use super::host_ops::HostLaunches;
use super::kernel_node::kernel_node;
use super::launches::{KernelRun, Launches};
use super::memory::{Arenas, Faults, error};
use super::messages::MessageWork;
use super::modules::{PrebuiltCode, modules, modules_of};
use super::options::LaunchMode;
use super::phase_graph::{KernelPosition, OutputGraphs, PhaseGraph, PhaseGraphs, split};
use super::phase_order::{NodeSink, order_nodes};
use super::programmatic_edges::ProgrammaticEdges;
use super::rank_messages::RankMessages;
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
    messages: Option<&'a Arc<RankMessages>>,
    functions: Vec<BTreeMap<Entry, Function>>,
    constants: Vec<(Constants, u64)>,
    edges: ProgrammaticEdges,
    /// The kernel of each node of the graph.
    positions: Vec<Option<KernelPosition>>,
    /// The launch of each node of the graph.
    launch_of: Vec<Launch>,
}

pub(super) fn graphs(
    program: &Program,
    launches: &Launches,
    (frames, faults, arenas): (&Frames, &Faults, &Arenas),
    (hosted, messages): (&Arc<Mutex<HostLaunches>>, Option<&Arc<RankMessages>>),
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
        messages,
        functions: vec![BTreeMap::new(); launches.of_device.len()],
        constants: Vec::new(),
        edges,
        positions: Vec::new(),
        launch_of: Vec::new(),
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
        // A rank's kernels differ from the program's: it reads sums that the host has added.
        let all = match &self.launches.share {
            None => modules(self.program, options)?,
            Some(_) => modules_of(self.launches),
        };
        for module in all {
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
        self.positions.clear();
        self.launch_of.clear();
        let (program, launches) = (self.program, self.launches);
        let mut nodes = SpecNodes {
            builder: self,
            shape,
            spec: GraphSpec::default(),
        };
        order_nodes((program, launches), (phase, shape), &mut nodes)?;
        Ok(nodes.spec)
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

/// Adds the nodes of a phase to a graph.
struct SpecNodes<'a, 'b> {
    builder: &'a mut GraphBuilder<'b>,
    shape: usize,
    spec: GraphSpec,
}

impl SpecNodes<'_, '_> {
    fn push(
        &mut self,
        (launch, at): (Launch, Option<KernelPosition>),
        work: Work,
        after: &[usize],
    ) -> usize {
        let label = launch_label(self.builder.program, launch);
        self.builder.launch_of.push(launch);
        self.builder.positions.push(at);
        self.spec.push(label, work, after)
    }
}

impl NodeSink for SpecNodes<'_, '_> {
    fn kernel(&mut self, at: KernelPosition, run: &KernelRun, after: &[usize]) -> Option<usize> {
        let node = self
            .builder
            .kernel(at.device, at.launch, (run, self.shape))?;
        let pushed = self.push((at.launch, Some(at)), Work::Kernel(node), after);
        let (device, spec) = (at.device, &mut self.spec);
        self.builder.edges.kernel(device, after, spec);
        Some(pushed)
    }

    fn host(&mut self, launch: Launch, op: usize, after: &[usize]) -> usize {
        let work = host_work(self.builder.hosted, op);
        self.push((launch, None), work, after)
    }

    fn message(&mut self, launch: Launch, work: MessageWork, after: &[usize]) -> usize {
        let (hosted, messages) = (self.builder.hosted, self.builder.messages);
        let work = messages.map_or(Work::Join, |messages| {
            let (hosted, messages) = (Arc::clone(hosted), Arc::clone(messages));
            Work::Host(Box::new(move || messages.run(work, &hosted)))
        });
        self.push((launch, None), work, after)
    }
}

fn host_work(hosted: &Arc<Mutex<HostLaunches>>, op: usize) -> Work {
    let hosted = Arc::clone(hosted);
    Work::Host(Box::new(move || -> Result<(), HostError> {
        let mut hosted = hosted.lock().map_err(|_| "a host op panicked")?;
        hosted.run(op).map_err(Into::into)
    }))
}
