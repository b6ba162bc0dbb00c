//! The CUDA executor: runs programs as graphs of launches.
//!
//! Each arena is an allocation on its device, or in host memory that all devices can access. Each batch shape and phase
//! has one graph, built when the program is loaded and launched once per batch. Another graph copies the logits to the
//! host, or finds the largest. Nodes are launches. Edges are the order within queues, waits, and the order of exchanged
//! values. The *frame* of a device holds the views of all
//! launches. Before each batch, the executor copies the views that changed.

mod accesses;
mod best_logits;
mod best_output;
mod constants;
mod device_frame;
mod device_view;
mod exchange;
mod frames;
mod fuse;
mod graph;
mod host_ops;
mod kernel_node;
mod landings;
mod launch_record;
mod launches;
mod linked;
mod load;
mod memory;
mod messages;
mod modules;
mod node_order;
mod options;
mod phase_graph;
mod phase_order;
mod place;
mod planned;
mod profile;
mod programmatic_edges;
mod queue_order;
mod rank_messages;
mod rank_plan;
mod rank_tasks;
mod ranks;
mod requirements;
mod roles;
mod snapshot;
mod standalone;
mod stepped;
mod task;
mod task_builder;
mod term_slot;
mod terms;

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tpc_cpu::View as HostView;
use tpc_cpu::host;
use tpc_ir::op::InputKind;
use tpc_ir::program::{BatchLayout, Program};
use tpc_ir::{Arena, Bindings, DType, Place, Value};
use tpc_runtime::host::{StoredExtent, inputs, outputs, weight_tensor};
use tpc_runtime::ranks::RankSeat;
use tpc_runtime::{
    BatchRun, Batches, ExecError, Executor, Frame, Host, Interface, KernelTime, NextPhase, Outputs,
    Tensor, WeightSource,
};

use crate::driver::{Device, Driver, DriverError, Endpoint, PeerFailure, Side};
use device_view::DeviceView;
use frames::Frames;
use host_ops::HostLaunches;
use launches::Launches;
use linked::{Linked, own_extents};
use memory::{Arenas, Faults};
use messages::is_here;
use phase_graph::{PhaseGraph, PhaseGraphs};
use profile::Profile;
use programmatic_edges::ProgrammaticEdges;
use rank_messages::RankMessages;
use snapshot::ExecutorMemory;
use stepped::Stepper;

pub use kernel_node::kernel_node;
pub use memory::error;
pub use modules::{PrebuiltCode, SourceHash, launch_list, modules};
pub use options::{CudaOptions, CudaTarget, Edges, LaunchMode};
pub use planned::{PlannedKernel, PlannedNode, PlannedTensor, planned_step};
pub use standalone::{StandaloneLaunch, TensorView, load_kernels};

/// Runs a [`Program`] on a driver. Device `i` of the program is device `i` of the driver.
pub struct CudaExecutor<D: Driver> {
    program: Arc<Program>,
    interface: Interface,
    /// Reading device memory needs exclusive access, even in methods with `&self`.
    driver: RefCell<D>,
    arenas: Arenas,
    frame: Frame<DeviceView>,
    frames: Frames,
    launches: Launches,
    hosted: Arc<Mutex<HostLaunches>>,
    /// The graphs, by batch shape and phase.
    graphs: Vec<Vec<PhaseGraphs>>,
    profile: Profile,
    /// The folder for dumps of failed launches.
    dump_folder: Option<PathBuf>,
    faults: Faults,
    inputs: Vec<(usize, Value, InputKind)>,
    outputs: Vec<(usize, Value)>,
    extents: Vec<Option<StoredExtent>>,
    /// Host copies of states that were read since the last batch.
    state_copies: Vec<OnceCell<Vec<u8>>>,
    /// States whose host copies have changed.
    changed: Vec<Value>,
    batches: Batches,
    no_peer_access: Vec<((u32, u32), PeerFailure)>,
    /// The messages, if the program has devices in other processes.
    linked: Option<Linked>,
}

impl<D: Driver> std::fmt::Debug for CudaExecutor<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CudaExecutor")
            .field("graphs", &self.graphs)
            .finish_non_exhaustive()
    }
}

impl<D: Driver> CudaExecutor<D> {
    /// Loads a verified program and its weights.
    ///
    /// # Errors
    ///
    /// Returns an error in these cases:
    ///
    /// - A weight is missing or does not match its declaration.
    /// - CUDA devices do not support an op.
    /// - The driver has fewer devices than the program.
    /// - Memory is exhausted, or the driver fails.
    pub fn new(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        driver: D,
        options: CudaOptions,
    ) -> Result<CudaExecutor<D>, ExecError> {
        CudaExecutor::with_code(program, weights, driver, options, &PrebuiltCode::default())
    }

    /// Works like [`CudaExecutor::new`], with precompiled code. Missing code is compiled now.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`CudaExecutor::new`].
    pub fn with_code(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        driver: D,
        options: CudaOptions,
        prebuilt: &PrebuiltCode,
    ) -> Result<CudaExecutor<D>, ExecError> {
        CudaExecutor::on_rank(program, weights, driver, options, (prebuilt, None))
    }

    /// Works like [`CudaExecutor::with_code`]. With a seat, it loads and runs only the share of one rank. The driver then
    /// needs any device in place of a device of another rank, which is not used.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`CudaExecutor::new`].
    pub fn on_rank(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        mut driver: D,
        options: CudaOptions,
        (prebuilt, seat): (&PrebuiltCode, Option<RankSeat>),
    ) -> Result<CudaExecutor<D>, ExecError> {
        requirements::check_devices(&program, &driver)?;
        let infos = driver.devices().to_vec();
        let mut no_peer_access = BTreeMap::new();
        let mut reach = |reader: usize, owner: usize| {
            let [from, to] = [reader, owner].map(|d| Device(d as u32));
            match driver.grant(from, to) {
                Ok(()) => Ok(true),
                Err(DriverError::NoPeerAccess { why, .. }) => {
                    no_peer_access.insert((infos[reader].card, infos[owner].card), why);
                    Ok(false)
                }
                Err(e) => Err(error(e)),
            }
        };
        let share = seat.as_ref().map(|seat| &seat.share);
        let launches = Launches::new((&program, share), &infos, &mut reach, options)?;
        requirements::check_memory(&program, &launches, &driver)?;
        let mut arenas = Arenas::new((&program, share), &mut driver)?;
        let frames = Frames::new(&program, &launches, &arenas, &mut driver)?;
        let frame = Frame::new(&program, &launches.slots, DeviceView::none);
        let hosted = HostLaunches::new(&program, &launches, &arenas, options)?;
        let hosted = Arc::new(Mutex::new(hosted));
        let outputs = outputs(&program);
        let messages = seat.map(|seat| RankMessages::new(seat, &launches, options.options));
        let linked = messages
            .transpose()?
            .map(|m| Linked::new(&program, m, outputs.len()));
        let faults = Faults::new(&program, &mut driver)?;
        let graphs = graph::graphs(
            &program,
            &launches,
            (&frames, &faults, &arenas),
            (&hosted, linked.as_ref().map(|l| &l.messages)),
            &mut driver,
            (prebuilt, options.options),
            (ProgrammaticEdges::new(&infos, options.edges), options.mode),
        )?;
        load::weights(
            &program,
            (&arenas, launches.share.as_ref()),
            weights,
            &mut driver,
            (&mut lock(&hosted)?.ops, options.threads),
        )?;
        arenas.clear_states(&program, &mut driver)?;
        let values = program.graph.values().len();
        Ok(CudaExecutor {
            interface: Interface::from_graph(&program.graph),
            inputs: inputs(&program),
            outputs,
            extents: own_extents(&program, launches.share.as_ref()),
            state_copies: (0..values).map(|_| OnceCell::new()).collect(),
            changed: Vec::new(),
            driver: RefCell::new(driver),
            arenas,
            frame,
            frames,
            launches,
            hosted,
            graphs,
            profile: Profile::default(),
            dump_folder: None,
            faults,
            no_peer_access: no_peer_access.into_iter().collect(),
            batches: Batches::default(),
            linked,
            program,
        })
    }

    /// Writes a dump of a failed launch to this folder. Has an effect only with [`LaunchMode::Stepped`].
    #[must_use]
    pub fn with_dump_folder(self, folder: PathBuf) -> CudaExecutor<D> {
        CudaExecutor {
            dump_folder: Some(folder),
            ..self
        }
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns pairs of cards that exchange data through host memory: the first cannot access the second's memory.
    pub fn no_peer_access(&self) -> &[((u32, u32), PeerFailure)] {
        &self.no_peer_access
    }

    fn set_frame(&mut self, shape: usize, sizes: &Bindings) -> Result<(), ExecError> {
        let arenas = &self.arenas;
        let view = |arena: Arena, dtype: DType, at: &BatchLayout| {
            DeviceView::new(arenas.address(arena), dtype, at)
        };
        let change = self.frame.set(&self.program, shape, sizes, view)?;
        let driver = self.driver.get_mut();
        if change.views || change.sizes {
            self.frames
                .write(&self.launches, self.frame.slots(), (shape, sizes), driver)?;
            let mut hosted = lock(&self.hosted)?;
            let of = (&self.launches, &self.frames);
            hosted.set(of, self.frame.slots(), sizes)?;
            if let Some(linked) = &self.linked {
                linked
                    .messages
                    .set(&self.launches, (&self.frame, &self.frames))?;
            }
        }
        Ok(())
    }

    /// Runs the launches of a phase, and waits for them. `finds_best`: the last launches find the largest elements of the
    /// output instead of copying the output.
    fn run_launches(
        &mut self,
        (shape, phase): (usize, usize),
        finds_best: bool,
    ) -> Result<(), ExecError> {
        let driver = self.driver.get_mut();
        let PhaseGraphs { main, output } = &self.graphs[shape][phase];
        match main {
            PhaseGraph::Whole(graph) | PhaseGraph::Timed(graph, _) => {
                let last = output.map(|of| if finds_best { of.best } else { of.all });
                let mut graphs = std::iter::once(*graph).chain(last);
                let ran = graphs.try_for_each(|graph| driver.launch(graph));
                let ran = ran.and_then(|()| driver.synchronize());
                ran.map_err(of_unknown_launch)?;
                if let PhaseGraph::Timed(graph, nodes) = main {
                    let times = driver.node_times(*graph).map_err(error)?;
                    self.profile.add((&self.launches, shape), nodes, &times);
                }
                for d in 0..self.faults.devices() {
                    if let Some(fault) = self.faults.take(d, driver)? {
                        let of = (&*self.program, &self.frame);
                        return Err(stepped::index_error(of, &self.launches, (fault, d, shape)));
                    }
                }
                Ok(())
            }
            PhaseGraph::Steps(steps) => {
                let stepper = Stepper {
                    memory: ExecutorMemory {
                        program: &self.program,
                        launches: &self.launches,
                        arenas: &self.arenas,
                        frames: &self.frames,
                    },
                    frame: &self.frame,
                    faults: &self.faults,
                    folder: self.dump_folder.as_deref(),
                    shape,
                };
                stepper.run(steps, driver)
            }
        }
    }

    fn next_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        let Some(next) = run.next(&self.program, &mut self.batches)? else {
            return Ok(());
        };
        let NextPhase { phase, shape, .. } = next;
        self.write_states()?;
        let sizes = run.sizes().in_units(self.program.graph.cell_unit.0);
        self.set_frame(shape, &sizes)?;
        self.write_inputs(phase, host)?;
        let wanted = self.best_wanted((shape, phase), outputs);
        if let Some(wanted) = wanted {
            self.ask_best(wanted)?;
        }
        self.begin_messages(phase)?;
        self.run_launches((shape, phase), wanted.is_some())?;
        if let Some(wanted) = wanted
            && !self.read_best(shape, wanted, outputs)?
        {
            self.copy_output(shape, phase)?;
        }
        self.end_messages(phase)?;
        self.read_outputs(phase, outputs)?;
        run.advance();
        Ok(())
    }

    fn write_states(&mut self) -> Result<(), ExecError> {
        for state in std::mem::take(&mut self.changed) {
            let bytes = self.state_copies[state.index()].get();
            let at = self.extents[state.index()];
            if let (Some(bytes), Some(at)) = (bytes, at) {
                let to = self.arenas.endpoint(at.arena, at.offset);
                self.driver.get_mut().write(to, bytes).map_err(error)?;
            }
        }
        self.state_copies
            .iter_mut()
            .for_each(|s| *s = OnceCell::new());
        Ok(())
    }

    /// Returns the address of a range of a state's bytes; `None` if the range is not within a kept state.
    fn range_of(&self, state: Value, offset: usize, len: usize) -> Option<Endpoint> {
        let at = self.extents.get(state.index()).copied().flatten()?;
        let end = offset.checked_add(len)?;
        (end <= at.bytes).then(|| self.arenas.endpoint(at.arena, at.offset + offset as u64))
    }

    fn write_inputs(&mut self, phase: usize, host: &mut dyn Host) -> Result<(), ExecError> {
        for (at, value, kind) in &self.inputs {
            if *at != phase {
                continue;
            }
            let ty = &self.program.graph.value(*value).ty;
            let view = self.frame.view(*value);
            match self.program.graph.value(*value).place {
                Place::Host => host.input(kind, ty, host::slot(&view.on_host())?)?,
                _ => {
                    // `u64` is aligned for every input type.
                    let mut bytes = vec![0_u64; view.dense_bytes().div_ceil(8)];
                    let staged =
                        HostView::dense(bytes.as_mut_ptr().cast(), view.dtype, view.sizes());
                    host.input(kind, ty, host::slot(&staged)?)?;
                    let bytes: Vec<u8> = bytes.iter().flat_map(|w| w.to_ne_bytes()).collect();
                    let to = Endpoint {
                        side: self.arenas.side_of(&self.program, *value),
                        address: view.address,
                    };
                    let bytes = &bytes[..view.dense_bytes()];
                    if !is_here(
                        self.launches.share.as_ref(),
                        self.program.graph.value(*value).place,
                    ) {
                        continue;
                    }
                    self.driver.get_mut().write(to, bytes).map_err(error)?;
                }
            }
        }
        Ok(())
    }

    fn with_output<T>(
        &self,
        value: Value,
        read: impl FnOnce(&HostView) -> T,
    ) -> Result<T, ExecError> {
        let view = self.frame.view(value);
        let side = match self.arenas.side_of(&self.program, value) {
            Side::Host => return Ok(read(&view.on_host())),
            side => side,
        };
        let mut bytes = vec![0_u8; view.reach()];
        let from = Endpoint {
            side,
            address: view.address,
        };
        let read_bytes = self.driver.borrow_mut().read(from, &mut bytes);
        read_bytes.map_err(error)?;
        Ok(read(&HostView {
            ptr: bytes.as_mut_ptr(),
            ..view.on_host()
        }))
    }

    fn read_outputs(&self, phase: usize, outputs: &mut Outputs) -> Result<(), ExecError> {
        for (i, (at, value)) in self.outputs.iter().enumerate() {
            let is_best = outputs.best().is_some() && self.best_output() == Some(i);
            if *at == phase && !outputs.are_unread() && !is_best {
                let to = outputs.place(i)?;
                match self.received(i, |view| host::read(view, to)) {
                    Some(read) => read??,
                    None => {
                        let to = outputs.place(i)?;
                        self.with_output(*value, |view| host::read(view, to))??;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns the error of a graph of several launches.
fn of_unknown_launch(e: DriverError) -> ExecError {
    match &e {
        DriverError::Failed { .. } => ExecError::Device {
            code: e.code(),
            what: format!("{e}. The launch is unknown: the driver does not name it"),
        },
        _ => error(e),
    }
}

/// Locks the host ops. Returns an error if a host op has panicked.
fn lock(
    hosted: &Mutex<HostLaunches>,
) -> Result<std::sync::MutexGuard<'_, HostLaunches>, ExecError> {
    hosted.lock().map_err(|_| ExecError::Parameter {
        what: "a host op panicked".into(),
    })
}

impl<D: Driver> Executor for CudaExecutor<D> {
    fn interface(&self) -> &Interface {
        &self.interface
    }

    fn lookahead(&self, run: &BatchRun) -> Option<u32> {
        run.lookahead(&self.program)
    }

    fn run_phase(
        &mut self,
        run: &mut BatchRun,
        host: &mut dyn Host,
        outputs: &mut Outputs,
    ) -> Result<(), ExecError> {
        let done = self.next_phase(run, host, outputs);
        if let (Err(e), Some(linked)) = (&done, &self.linked) {
            linked.fail(&e.to_string());
        }
        done
    }

    fn commit(&mut self) {}

    fn discard(&mut self) {}

    fn state(&self, state: Value) -> Result<Option<&[u8]>, ExecError> {
        let Some(at) = self.extents.get(state.index()).copied().flatten() else {
            return Ok(None);
        };
        let copy = &self.state_copies[state.index()];
        if copy.get().is_none() {
            let mut bytes = vec![0; at.bytes];
            let from = self.arenas.endpoint(at.arena, at.offset);
            let read = self.driver.borrow_mut().read(from, &mut bytes);
            read.map_err(error)?;
            let _ = copy.set(bytes);
        }
        Ok(copy.get().map(Vec::as_slice))
    }

    fn state_mut(&mut self, state: Value) -> Result<Option<&mut [u8]>, ExecError> {
        if self.state(state)?.is_none() {
            return Ok(None);
        }
        self.changed.push(state);
        let copy = &mut self.state_copies[state.index()];
        Ok(copy.get_mut().map(Vec::as_mut_slice))
    }

    fn read_state(&self, state: Value, offset: usize, to: &mut [u8]) -> Result<bool, ExecError> {
        let Some(from) = self.range_of(state, offset, to.len()) else {
            return Ok(false);
        };
        match self.state_copies[state.index()].get() {
            // The copy may have changes that the device does not have yet.
            Some(copy) => to.copy_from_slice(&copy[offset..][..to.len()]),
            None if to.is_empty() => {}
            None => self.driver.borrow_mut().read(from, to).map_err(error)?,
        }
        Ok(true)
    }

    fn write_state(
        &mut self,
        state: Value,
        offset: usize,
        bytes: &[u8],
    ) -> Result<bool, ExecError> {
        let Some(to) = self.range_of(state, offset, bytes.len()) else {
            return Ok(false);
        };
        if !bytes.is_empty() {
            self.driver.get_mut().write(to, bytes).map_err(error)?;
        }
        if let Some(copy) = self.state_copies[state.index()].get_mut() {
            copy[offset..][..bytes.len()].copy_from_slice(bytes);
        }
        Ok(true)
    }

    fn output(&self, output: usize) -> Result<Option<(DType, Vec<u8>)>, ExecError> {
        let Some((_, value)) = self.outputs.get(output) else {
            return Ok(None);
        };
        let packed = |view: &HostView| (view.dtype, host::packed(view));
        match self.received(output, packed) {
            Some(read) => read.map(Some),
            None => self.with_output(*value, packed).map(Some),
        }
    }

    fn weight(&self, weight: Value) -> Result<Option<Tensor>, ExecError> {
        let bytes = self.state(weight)?;
        Ok(bytes.and_then(|bytes| weight_tensor(&self.program, weight, bytes)))
    }

    fn take_profile(&mut self) -> Vec<KernelTime> {
        self.profile.take()
    }

    fn reset_states(&mut self) -> Result<(), ExecError> {
        self.changed.clear();
        self.state_copies
            .iter_mut()
            .for_each(|s| *s = OnceCell::new());
        self.arenas
            .clear_states(&self.program, self.driver.get_mut())
    }
}
