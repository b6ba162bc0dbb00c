//! Builds CUDA graphs from the queues of a program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use tpc_ir::Launch;
use tpc_ir::program::{Phase, Program};
use tpc_runtime::host::launch_label;
use tpc_runtime::{ExecError, Options};

use super::constants::Constants;
use super::host_ops::HostLaunches;
use super::kernel_node::kernel_node;
use super::launches::{KernelRun, Launches};
use super::memory::{Faults, Frames, error};
use super::modules::{PrebuiltCode, modules};
use super::options::LaunchMode;
use super::phase_graph::{KernelPosition, PhaseGraph};
use super::phase_order::{NodeSink, order_nodes};
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
    hosted: &'a Arc<Mutex<HostLaunches>>,
    functions: Vec<BTreeMap<Entry, Function>>,
    constants: Vec<(Constants, u64)>,
    edges: ProgrammaticEdges,
    /// The kernel of each node of the graph.
    positions: Vec<Option<KernelPosition>>,
}

pub(super) fn graphs(
    program: &Program,
    launches: &Launches,
    (frames, faults): (&Frames, &Faults),
    hosted: &Arc<Mutex<HostLaunches>>,
    driver: &mut impl Driver,
    code: (&PrebuiltCode, Options),
    (edges, mode): (ProgrammaticEdges, LaunchMode),
) -> Result<Vec<Vec<PhaseGraph>>, ExecError> {
    let mut builder = GraphBuilder {
        program,
        launches,
        frames,
        faults,
        hosted,
        functions: vec![BTreeMap::new(); launches.of_device.len()],
        constants: Vec::new(),
        edges,
        positions: Vec::new(),
    };
    builder.load(driver, code)?;
    let mut out = Vec::new();
    for shape in 0..program.shapes.len() {
        let mut of_shape = Vec::new();
        for phase in &program.phases {
            let spec = builder.spec(phase, shape)?;
            let graph = PhaseGraph::new(spec, &builder.positions, mode, driver);
            of_shape.push(graph.map_err(error)?);
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
        self.positions.clear();
        let (program, launches) = (self.program, self.launches);
        let mut nodes = SpecNodes {
            builder: self,
            shape,
            spec: GraphSpec::default(),
        };
        order_nodes((program, launches), phase, &mut nodes)?;
        Ok(nodes.spec)
    }

    fn kernel(
        &mut self,
        device: usize,
        launch: Launch,
        (run, shape): (&KernelRun, usize),
    ) -> Option<KernelNode> {
        let kernel = run.kernels[shape].as_ref()?;
        let (constants, address) = &mut self.constants[device];
        let views = self.frames.slot(self.launches, device, run.slots.start);
        let params = *address + constants.add(&kernel.params);
        let addresses = [views, params, self.faults.address(device)];
        let function = self.functions[device][&entry(kernel)];
        let number = launch.index() as u32;
        Some(kernel_node(kernel, function, addresses, number))
    }
}

/// Adds the nodes of a phase to a graph.
struct SpecNodes<'a, 'b> {
    builder: &'a mut GraphBuilder<'b>,
    shape: usize,
    spec: GraphSpec,
}

impl NodeSink for SpecNodes<'_, '_> {
    fn kernel(&mut self, at: KernelPosition, run: &KernelRun, after: &[usize]) -> Option<usize> {
        let node = self
            .builder
            .kernel(at.device, at.launch, (run, self.shape))?;
        let label = launch_label(self.builder.program, at.launch);
        let pushed = self.spec.push(label, Work::Kernel(node), after);
        self.builder.positions.push(Some(at));
        let (device, spec) = (at.device, &mut self.spec);
        self.builder.edges.kernel(device, after, spec);
        Some(pushed)
    }

    fn host(&mut self, launch: Launch, op: usize, after: &[usize]) -> usize {
        let work = host_work(self.builder.hosted, op);
        let label = launch_label(self.builder.program, launch);
        let pushed = self.spec.push(label, work, after);
        self.builder.positions.push(None);
        pushed
    }
}

fn host_work(hosted: &Arc<Mutex<HostLaunches>>, op: usize) -> Work {
    let hosted = Arc::clone(hosted);
    Work::Host(Box::new(move || -> Result<(), HostError> {
        let mut hosted = hosted.lock().map_err(|_| "a host op panicked")?;
        hosted.run(op).map_err(Into::into)
    }))
}
