//! The CPU executor: runs programs on threads.
//!
//! Each device has a group of threads. The group shares each launch of the device's queue and meets at a barrier
//! after it. Devices wait for one another at the program's waits and in collectives. Choices and look-ups happen
//! before a batch runs; addresses change only with sizes.

mod collective;
mod gather;
mod host_ops;
mod io;
mod joint;
mod launches;
mod load;
mod local;
mod memory;
mod message_memory;
mod options;
mod order;
mod parts;
mod product;
mod profile;
mod rank_exchange;
mod ranks;
mod scripts;
mod terms;

pub(crate) mod shared {
    pub use super::host_ops::HostOps;
    pub use super::io::{error, packed, read, slot};
    pub use super::rank_exchange::RankExchange;
}

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tpc_ir::op::InputKind;
use tpc_ir::program::{ArenaKind, BatchLayout, Program, Step};
use tpc_ir::{Arena, Bindings, DType, Inst, Launch, Place, Value};
use tpc_runtime::host::{self, StoredExtent, launch_label};
use tpc_runtime::ranks::{RankSeat, Share};
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
use collective::Parts;
use launches::{Action, Launches, Meeting, Prepared};
use local::Local;
use memory::Region;
use product::{DeviceScratch, WorkerScratch};
use profile::Profile;
use ranks::{Linked, Panics};
use scripts::{Script, group_of, groups, scripts};

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
    /// Steps whose own part is done, per queue: a collective is done when the parts of all participants are.
    parts: Vec<Progress>,
    /// Inputs, with their phase.
    inputs: Vec<(usize, Value, InputKind)>,
    outputs: Vec<(usize, Value)>,
    isa: Isa,
    batches: Batches,
    /// Extents of weights and states, by value.
    extents: Vec<Option<StoredExtent>>,
    profile: Option<Profile>,
    /// The messages, if the program has devices in other processes.
    linked: Option<Linked>,
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

/// Removes what other ranks do, and lets products share activations.
fn own_launches(
    program: &Program,
    mut launches: Launches,
    scripts: &[Vec<Script>],
    share: Option<&Share>,
) -> Launches {
    for (phase, scripts) in program.phases.iter().zip(scripts) {
        for script in scripts {
            // Another rank's launch does not prepare activations on this rank.
            let runs = |&(queue, i): &(usize, usize)| match phase.queues[queue].steps[i] {
                Step::Launch(launch) => share.is_none_or(|s| s.runs(launch)),
                Step::Wait { .. } => false,
            };
            let own: Script = script.iter().copied().filter(runs).collect();
            launches.keep_activations(phase, &own);
        }
    }
    if let Some(share) = share {
        ranks::keep_own_meetings(program, share, &mut launches);
    }
    launches
}

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
        CpuExecutor::on_rank(program, weights, options, (cores, None))
    }

    /// Creates an executor like [`CpuExecutor::on_cores`]. With a seat, it loads and runs only the share of one rank.
    ///
    /// # Errors
    /// Returns the errors of [`CpuExecutor::on_cores`].
    pub fn on_rank(
        program: Arc<Program>,
        weights: &dyn WeightSource,
        options: CpuOptions,
        (cores, seat): (&CoreSets, Option<RankSeat>),
    ) -> Result<CpuExecutor, ExecError> {
        let share = seat.as_ref().map(|s| &s.share);
        let here = |place: Place| share.is_none_or(|s| s.has(place));
        let places = groups(&program, &here);
        let cores = cores.of_places(&places);
        let threads = divide(options.threads, &cores);
        let mut team = Team::on_cores(&threads, &cores).map_err(|e| ExecError::Parameter {
            what: e.to_string(),
        })?;
        let arenas: Result<Vec<Region>, ExecError> = program
            .arenas
            .iter()
            .map(|a| Region::new(if here(a.place) { a.bytes } else { 0 }))
            .collect();
        let mut arenas = arenas?;
        let first_byte = |arena: Arena| arenas[arena.index()].ptr();
        let phases = program.phases.iter();
        let scripts: Vec<Vec<Script>> = phases
            .map(|p| scripts(&program, p, &places, &here))
            .collect();
        let launches = Launches::new(&program, &first_byte, options)?;
        let launches = own_launches(&program, launches, &scripts, share);
        let frame = Frame::new(&program, &launches.slots, |dtype| {
            View::dense(std::ptr::null_mut(), dtype, [0; 4])
        });
        let before = |i: usize| threads[..i].iter().sum();
        let first = (0..places.len()).map(before).collect();
        let profile = (options.profile).then(|| Profile::new(&program));
        let inputs = host::inputs(&program);
        let outputs = host::outputs(&program);
        let queues = program.phases.iter().map(|p| p.queues.len()).max();
        let local = Local::new(&program, &places, &cores);
        local.place_weights(&arenas, &mut team)?;
        let wanted = |buffer| share.is_none_or(|s| s.uses(&program, buffer));
        load::weights(&program, &mut arenas, (weights, &wanted), &mut team)?;
        let mut extents = host::extents(&program);
        for extent in &mut extents {
            *extent = extent.filter(|e| here(program.arenas[e.arena].place));
        }
        let group_of = |place| group_of(&places, place);
        let linked = seat.map(|seat| Linked::new(&program, seat, &launches, &group_of));
        let linked = linked.transpose()?;
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
            progress: (0..queues.unwrap_or(0))
                .map(|_| Progress::default())
                .collect(),
            parts: (0..queues.unwrap_or(0))
                .map(|_| Progress::default())
                .collect(),
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
            extents,
            profile,
            linked,
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
        for p in self.progress.iter().chain(&self.parts) {
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
            parts: &self.parts,
            isa: self.isa,
            profile: self.profile.as_ref(),
            linked: self.linked.as_ref(),
            phase,
        };
        let steps = |worker: &Worker<'_>| {
            let _panics = Panics(running.linked);
            for &(q, i) in &scripts[worker.device()] {
                let step = &queues[q].steps[i];
                if let Err(e) = running.timed(worker, (q, i), step) {
                    if let Step::Launch(launch) = step
                        && e != KernelError::Stopped
                    {
                        failed.store(launch.index(), Ordering::Relaxed);
                    }
                    if let Some(linked) = running.linked.filter(|_| e != KernelError::Stopped) {
                        linked.fail(&e.to_string());
                    }
                    return Err(e);
                }
            }
            Ok(())
        };
        let vectors = self.isa.vectors();
        let done = (self.team).run(|worker| crate::simd::with(vectors, || steps(worker)));
        done.map_err(|e| {
            if let Some(other) = self.linked.as_ref().and_then(Linked::failure) {
                return other;
            }
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
    parts: &'a [Progress],
    isa: Isa,
    profile: Option<&'a Profile>,
    linked: Option<&'a Linked>,
    phase: usize,
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
        if let Some(linked) = self.linked {
            for &(queue, steps) in linked.implied(self.phase, (q, i)) {
                self.wait(worker, queue, steps)?;
            }
        }
        let launch = match *step {
            // Messages order the queues of other ranks.
            Step::Wait { queue, .. } if !self.is_local(queue) => None,
            Step::Wait { queue, steps } => {
                self.wait(worker, queue, steps)?;
                None
            }
            Step::Launch(launch) => Some(launch).filter(|l| self.runs(*l)),
        };
        let met = match launch.map(|l| &self.launches[l.index()].action) {
            Some(Action::Exchange(_, meetings)) => meetings,
            _ => &[][..],
        };
        for &Meeting { queue, steps, .. } in met.iter().filter(|m| m.queue != q) {
            self.wait(worker, queue, steps)?;
        }
        if let Some(launch) = launch {
            let own = met.iter().find(|m| m.queue == q);
            self.launch(worker, launch, own.map_or(0, |m| m.participant))?;
            worker.barrier()?;
            if let Some(linked) = self.linked {
                linked.after(worker, launch, self.frame)?;
            }
        }
        // Participants of a collective end together, so a wait for one of them is a wait for all.
        if met.len() > 1 && worker.index() == 0 {
            self.parts[q].0.store(i + 1, Ordering::Release);
            worker.notify();
        }
        for &Meeting { queue, steps, .. } in met.iter().filter(|m| m.queue != q) {
            worker.wait_for(|| self.parts[queue].0.load(Ordering::Acquire) > steps)?;
        }
        if worker.index() == 0 {
            self.progress[q].0.store(i + 1, Ordering::Release);
            worker.notify();
        }
        Ok(())
    }

    fn is_local(&self, queue: usize) -> bool {
        self.linked.is_none_or(|l| l.is_local(self.phase, queue))
    }

    fn runs(&self, launch: Launch) -> bool {
        self.linked.is_none_or(|l| l.share.runs(launch))
    }

    #[allow(unsafe_code)]
    fn launch(&self, worker: &Worker<'_>, launch: Launch, rank: usize) -> Result<(), KernelError> {
        let remote = self.linked.and_then(|l| Some((l, l.remote(launch)?)));
        let launch = &self.launches[launch.index()];
        let mut views = &self.frame.slots()[launch.slots..];
        let shared = &self.shared[worker.device()];
        let number = self.first[worker.device()] + worker.index();
        // SAFETY: each worker uses only the memory with its number.
        let own = unsafe { &mut *self.own[number].0.get() };
        if let Some((linked, remote)) = remote {
            linked.before(worker, remote)?;
            views = remote.views();
            if let (Action::Exchange(exchange, _), Some(parts)) = (&launch.action, remote.parts()) {
                let result = &views[launch.operands + rank];
                // SAFETY: as below; the blocks of other ranks have arrived.
                return unsafe { exchange.run(worker, rank, parts, result, &mut own.bytes) };
            }
        }
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
                let parts = Parts::all(operands);
                exchange.run(worker, rank, parts, &results[rank], &mut own.bytes)
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
        if let Some(linked) = &mut self.linked {
            linked.begin(
                (phase, changed.views || changed.sizes),
                &self.frame,
                &self.launches,
            )?;
        }
        self.run_queues(phase)?;
        for (i, (at, value)) in self.outputs.iter().enumerate() {
            if *at != phase {
                continue;
            }
            let arrived = self.linked.as_ref().and_then(|l| l.output(i));
            let view = arrived.unwrap_or_else(|| Ok(self.frame.view(*value)))?;
            if !outputs.are_unread() {
                io::read(&view, outputs.place(i)?)?;
            }
        }
        if let Some(linked) = &self.linked {
            linked.end()?;
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
