//! The CPU executor: runs programs on threads.
//!
//! Each device has a group of threads. The group shares each launch of the device's queue and meets at a barrier
//! after it. Devices wait for one another at the program's waits and in collectives. Choices and look-ups happen
//! before a batch runs; addresses change only with sizes.

mod collective;
mod gather;
mod host_ops;
mod io;
mod launches;
mod load;
mod local;
mod memory;
mod options;
mod parts;
mod product;
mod profile;
mod scripts;
mod terms;

pub(crate) mod shared {
    pub use super::host_ops::HostOps;
    pub use super::io::{error, packed, read, slot};
}

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tpc_ir::op::InputKind;
use tpc_ir::program::{ArenaKind, BatchLayout, Program, Step};
use tpc_ir::{Arena, Bindings, DType, Inst, Launch, Value};
use tpc_runtime::host::{self, StoredExtent, launch_label};
use tpc_runtime::{
    BatchRun, Batches, ExecError, Executor, Frame, Host, Interface, KernelTime, NextPhase, Outputs,
    Tensor, WeightSource,
};

pub use options::CpuOptions;

use crate::core_sets::{CoreSets, divide};
use crate::error::KernelError;
use crate::product::{Isa, Scratch};
use crate::team::Team;
use crate::view::View;
use crate::worker::Worker;
use launches::{Action, Launches, Prepared};
use local::Local;
use memory::Region;
use product::{DeviceScratch, WorkerScratch};
use profile::Profile;
use scripts::{Script, groups, scripts};

/// Runs a [`Program`] on threads.
#[derive(Debug)]
pub struct CpuExecutor {
    program: Arc<Program>,
    interface: Interface,
    team: Team,
    /// The steps of each thread group, per phase.
    scripts: Vec<Vec<Script>>,
    arenas: Vec<Region>,
    local: Local,
    launches: Launches,
    frame: Frame<View>,
    shared: Vec<DeviceScratch>,
    own: Vec<Own>,
    /// The first thread of each group.
    first: Vec<usize>,
    /// Steps done, per queue of the running phase.
    progress: Vec<Progress>,
    /// Inputs, with their phase.
    inputs: Vec<(usize, Value, InputKind)>,
    outputs: Vec<(usize, Value)>,
    isa: Isa,
    batches: Batches,
    /// Extents of weights and states, by value.
    extents: Vec<Option<StoredExtent>>,
    profile: Option<Profile>,
}

struct Own(UnsafeCell<WorkerScratch>);

impl Launches {
    fn own(&self) -> Own {
        let own = WorkerScratch {
            tiles: Scratch::new(),
            row: vec![0.0; self.row],
            bytes: vec![0; self.scratch],
        };
        Own(own.into())
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Own")
    }
}

// SAFETY: each worker uses only the memory with its number.
#[allow(unsafe_code)]
unsafe impl Sync for Own {}

/// A counter in its own cache line.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Progress(AtomicUsize);

impl CpuExecutor {
    fn extent(&self, value: Value) -> Option<StoredExtent> {
        *self.extents.get(value.index())?
    }

    /// Creates an executor of a verified program and loads the weights.
    ///
    /// # Errors
    /// Returns an error if a weight is missing or does not match its declaration, an op has no kernel, memory runs
    /// out, or a thread cannot start.
    pub fn new(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        options: CpuOptions,
    ) -> Result<CpuExecutor, ExecError> {
        CpuExecutor::on_cores(program, weights, options, &CoreSets::default())
    }

    /// Creates an executor like [`CpuExecutor::new`]. Threads of devices with cores stay on them, and the devices' memory
    /// is next to them. The results have the same bits.
    ///
    /// # Errors
    /// Returns the errors of [`CpuExecutor::new`], and an error if the process may not use a core.
    pub fn on_cores(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        options: CpuOptions,
        cores: &CoreSets,
    ) -> Result<CpuExecutor, ExecError> {
        let places = groups(&program);
        let cores = cores.of_places(&places);
        let threads = divide(options.threads, &cores);
        let mut team = Team::on_cores(&threads, &cores).map_err(|e| ExecError::Parameter {
            what: e.to_string(),
        })?;
        let arenas: Result<Vec<Region>, ExecError> = program
            .arenas
            .iter()
            .map(|a| Region::new(a.bytes))
            .collect();
        let mut arenas = arenas?;
        let first_byte = |arena: Arena| arenas[arena.index()].ptr();
        let mut launches = Launches::new(&program, &first_byte, options)?;
        let phases = program.phases.iter();
        let scripts: Vec<Vec<Script>> = phases.map(|p| scripts(&program, p, &places)).collect();
        for (phase, scripts) in program.phases.iter().zip(&scripts) {
            for script in scripts {
                launches.keep_activations(phase, script);
            }
        }
        let frame = Frame::new(&program, &launches.slots, |dtype| {
            View::dense(std::ptr::null_mut(), dtype, [0; 4])
        });
        let before = |i: usize| threads[..i].iter().sum();
        let first = (0..places.len()).map(before).collect();
        let profile = (options.profile).then(|| Profile::new(&program));
        let inputs = host::inputs(&program);
        let outputs = host::outputs(&program);
        let queues = program
            .phases
            .iter()
            .map(|p| p.queues.len())
            .max()
            .unwrap_or(0);
        let local = Local::new(&program, &places, &cores);
        local.place_weights(&arenas, &mut team)?;
        load::weights(&program, &mut arenas, weights, &mut team)?;
        Ok(CpuExecutor {
            interface: Interface::from_graph(&program.graph),
            shared: places
                .iter()
                .map(|_| DeviceScratch::new(&launches.needs))
                .collect::<Result<_, _>>()
                .map_err(|e| ExecError::Size {
                    what: format!("of the activations of products ({e})"),
                })?,
            own: (0..team.workers()).map(|_| launches.own()).collect(),
            progress: (0..queues).map(|_| Progress::default()).collect(),
            scripts,
            team,
            arenas,
            local,
            launches,
            frame,
            first,
            inputs,
            outputs,
            isa: options.isa,
            batches: Batches::default(),
            extents: host::extents(&program),
            profile,
            program,
        })
    }

    /// Returns the program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the products with activations rounded to int8, and their number of terms.
    pub fn rounded_products(&self) -> BTreeMap<Inst, usize> {
        let mut out = BTreeMap::new();
        for (i, launch) in self.launches.prepared.iter().enumerate() {
            if let Action::Product(weight) | Action::Experts(weight, _) = &launch.action
                && weight.format.takes_quantised()
            {
                let covered = self.program.launch(Launch::new(i)).covered_insts().iter();
                out.extend(covered.map(|inst| (*inst, weight.terms.each().len())));
            }
        }
        out
    }

    fn resize(&mut self, sizes: &Bindings) -> Result<(), ExecError> {
        for (i, launch) in self.launches.prepared.iter_mut().enumerate() {
            let named = |e: ExecError| e.at(|| launch_label(&self.program, Launch::new(i)));
            launch.resize(sizes).map_err(named)?;
        }
        if let Some(profile) = &mut self.profile {
            profile.resize(&self.program, sizes);
        }
        Ok(())
    }

    fn run_queues(&mut self, phase: usize) -> Result<(), ExecError> {
        let queues = &self.program.phases[phase].queues;
        for p in &self.progress {
            p.0.store(0, Ordering::Relaxed);
        }
        let scripts = &self.scripts[phase];
        let failed = AtomicUsize::new(usize::MAX);
        let running = Running {
            launches: &self.launches.prepared,
            frame: &self.frame,
            shared: &self.shared,
            own: &self.own,
            first: &self.first,
            progress: &self.progress,
            isa: self.isa,
            profile: self.profile.as_ref(),
        };
        let steps = |worker: &Worker<'_>| {
            for &(q, i) in &scripts[worker.device()] {
                let step = &queues[q].steps[i];
                if let Err(e) = running.timed(worker, (q, i), step) {
                    if let Step::Launch(launch) = step
                        && e != KernelError::Stopped
                    {
                        failed.store(launch.index(), Ordering::Relaxed);
                    }
                    return Err(e);
                }
            }
            Ok(())
        };
        let vectors = self.isa.vectors();
        let done = (self.team).run(|worker| crate::simd::with(vectors, || steps(worker)));
        done.map_err(|e| {
            let e = io::error(e);
            match failed.load(Ordering::Relaxed) {
                usize::MAX => e,
                launch => e.at(|| launch_label(&self.program, Launch::new(launch))),
            }
        })
    }
}

struct Running<'a> {
    launches: &'a [Prepared],
    frame: &'a Frame<View>,
    shared: &'a [DeviceScratch],
    own: &'a [Own],
    first: &'a [usize],
    progress: &'a [Progress],
    isa: Isa,
    profile: Option<&'a Profile>,
}

impl Running<'_> {
    fn wait(&self, worker: &Worker<'_>, queue: usize, steps: usize) -> Result<(), KernelError> {
        worker.wait_for(|| self.progress[queue].0.load(Ordering::Acquire) >= steps)
    }

    /// Runs step `i` of queue `q`, and times it if profiling is on.
    fn timed(
        &self,
        worker: &Worker<'_>,
        (q, i): (usize, usize),
        step: &Step,
    ) -> Result<(), KernelError> {
        let Some(profile) = self.profile else {
            return self.step(worker, (q, i), step);
        };
        let begun = profile.begin(worker);
        let done = self.step(worker, (q, i), step);
        if let Some(begun) = begun {
            profile.end(step, begun);
        }
        done
    }

    fn step(
        &self,
        worker: &Worker<'_>,
        (q, i): (usize, usize),
        step: &Step,
    ) -> Result<(), KernelError> {
        let launch = match *step {
            Step::Wait { queue, steps } => {
                self.wait(worker, queue, steps)?;
                None
            }
            Step::Launch(launch) => Some(&self.launches[launch.index()]),
        };
        let met = match launch.map(|l| &l.action) {
            Some(Action::Exchange(_, meetings)) => meetings,
            _ => &[][..],
        };
        for &(queue, steps) in met.iter().filter(|(queue, _)| *queue != q) {
            self.wait(worker, queue, steps)?;
        }
        if let Some(launch) = launch {
            let rank = met.iter().position(|(queue, _)| *queue == q).unwrap_or(0);
            self.launch(worker, launch, rank)?;
            worker.barrier()?;
        }
        if worker.index() == 0 {
            self.progress[q].0.store(i + 1, Ordering::Release);
            worker.notify();
        }
        for &(queue, steps) in met.iter().filter(|(queue, _)| *queue != q) {
            self.wait(worker, queue, steps + 1)?;
        }
        Ok(())
    }

    #[allow(unsafe_code)]
    fn launch(
        &self,
        worker: &Worker<'_>,
        launch: &Prepared,
        rank: usize,
    ) -> Result<(), KernelError> {
        let views = &self.frame.slots()[launch.slots..];
        let shared = &self.shared[worker.device()];
        let number = self.first[worker.device()] + worker.index();
        // SAFETY: each worker uses only the memory with its number.
        let own = unsafe { &mut *self.own[number].0.get() };
        // SAFETY: the verifier has checked that every view is inside its arena, and that steps with common memory are
        // ordered. The waits above and the barriers keep this order.
        unsafe { perform(worker, self.isa, (launch, rank), views, shared, own) }
    }
}

/// Runs a worker's share of a launch as participant `rank`.
///
/// # Safety
/// Same as [`crate::Kernel::run`]; only this launch's workers use the shared memory.
#[allow(unsafe_code)]
unsafe fn perform(
    worker: &Worker<'_>,
    isa: Isa,
    (launch, rank): (&Prepared, usize),
    views: &[View],
    shared: &DeviceScratch,
    own: &mut WorkerScratch,
) -> Result<(), KernelError> {
    let (operands, results) = views.split_at(launch.operands);
    let results = &results[..launch.results];
    // SAFETY: caller's contract.
    unsafe {
        match &launch.action {
            Action::Kernel(kernel) => kernel.run(worker, operands, results, &mut own.bytes),
            Action::Update(copy, kernel) => {
                copy.run(worker, &operands[..1], results, &mut own.bytes)?;
                worker.barrier()?;
                let mut all = [results[0]; 4];
                let n = operands.len().min(4);
                all[1..n].copy_from_slice(&operands[1..n]);
                kernel.run(worker, &all[..n], results, &mut own.bytes)
            }
            Action::Product(weight) => product::mul_mat(
                worker,
                isa,
                (weight, launch.kept),
                [&operands[1], &results[0]],
                shared,
                own,
            ),
            Action::Experts(weight, window) => product::mul_mat_id(
                worker,
                isa,
                (weight, *window, launch.kept),
                [&operands[1], &operands[2], &results[0]],
                shared,
                own,
            ),
            Action::Rows(weight, window) => {
                let views = [&operands[1], &results[0]];
                gather::get_rows(worker, isa, (weight, *window), views)
            }
            Action::Exchange(exchange, _) => {
                exchange.run(worker, rank, operands, &results[rank], &mut own.bytes)
            }
        }
    }
}

impl Executor for CpuExecutor {
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
        let Some(next) = run.next(&self.program, &mut self.batches)? else {
            return Ok(());
        };
        let NextPhase { phase, shape, .. } = next;
        let arenas = &self.arenas;
        let view = |arena: Arena, dtype, at: &BatchLayout| arenas[arena.index()].view(dtype, at);
        let changed = self.frame.set(&self.program, shape, run.sizes(), view)?;
        if changed.sizes {
            self.resize(run.sizes())?;
        }
        for (at, value, kind) in &self.inputs {
            if *at == phase {
                let ty = &self.program.graph.value(*value).ty;
                host.input(kind, ty, io::slot(&self.frame.view(*value))?)?;
            }
        }
        self.run_queues(phase)?;
        for (i, (at, value)) in self.outputs.iter().enumerate() {
            if *at == phase && !outputs.are_unread() {
                io::read(&self.frame.view(*value), outputs.place(i)?)?;
            }
        }
        run.advance();
        Ok(())
    }

    fn commit(&mut self) {}

    fn discard(&mut self) {}

    fn state(&self, state: Value) -> Result<Option<&[u8]>, ExecError> {
        match self.extent(state) {
            Some(at) => self.arenas[at.arena].bytes(at.offset, at.bytes).map(Some),
            None => Ok(None),
        }
    }

    fn state_mut(&mut self, state: Value) -> Result<Option<&mut [u8]>, ExecError> {
        match self.extent(state) {
            Some(at) => {
                self.local.place_states(&self.arenas, &mut self.team)?;
                self.arenas[at.arena].range(at.offset, at.bytes).map(Some)
            }
            None => Ok(None),
        }
    }

    fn output(&self, output: usize) -> Result<Option<(DType, Vec<u8>)>, ExecError> {
        let packed = self.outputs.get(output).map(|(_, value)| {
            let view = self.frame.view(*value);
            (view.dtype, io::packed(&view))
        });
        Ok(packed)
    }

    fn weight(&self, weight: Value) -> Result<Option<Tensor>, ExecError> {
        let bytes = self.state(weight)?;
        Ok(bytes.and_then(|bytes| host::weight_tensor(&self.program, weight, bytes)))
    }

    fn starved(&self) -> f64 {
        self.team.starved()
    }

    fn take_profile(&mut self) -> Vec<KernelTime> {
        let profile = self.profile.as_ref();
        profile.map_or_else(Vec::new, |p| p.take(&self.program))
    }

    fn reset_states(&mut self) -> Result<(), ExecError> {
        self.local.place_states(&self.arenas, &mut self.team)?;
        for (arena, data) in self.arenas.iter_mut().zip(&self.program.arenas) {
            if data.kind == ArenaKind::States {
                arena.clear();
            }
        }
        Ok(())
    }
}
