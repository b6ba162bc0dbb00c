//! Messages of an executor whose program has devices in other processes.
#![allow(unsafe_code)]

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tpc_ir::program::{Phase, Program};
use tpc_ir::{DType, Launch, Place, Value};
use tpc_runtime::host::launch_op;
use tpc_runtime::ranks::{Incoming, Outgoing, RankError, RankSeat, Share, Tag, Transport};
use tpc_runtime::{ExecError, Frame};

use super::collective::Parts;
use super::joint::Joint;
use super::launches::{Action, Launches};
use super::message_memory::{Memory, bytes_of, slice, slice_mut};
use super::order::{ImpliedWaits, implied_waits};
use crate::error::KernelError;
use crate::view::View;
use crate::worker::Worker;

/// Memory for a message from another rank.
#[derive(Debug)]
struct Landing {
    value: Value,
    from: usize,
    tag: Tag,
    memory: Memory,
    view: View,
    /// Number of the last run whose message a worker has claimed.
    claimed: AtomicU64,
    /// Number of the last run whose message has arrived.
    arrived: AtomicU64,
}

/// A launch that reads from other ranks.
#[derive(Debug)]
pub(super) struct Remote {
    /// The operands that arrive as messages.
    arrivals: Vec<(usize, usize)>,
    /// Operands and results, with the messages' memory.
    views: Vec<View>,
    joint: Option<SharedJoint>,
}

/// A collective among ranks. One group of threads exchanges the blocks for all groups.
#[derive(Debug)]
struct SharedJoint {
    joint: Joint,
    group: usize,
    /// Number of the last run whose blocks have arrived.
    done: AtomicU64,
}

/// A rank's messages.
#[derive(Debug)]
pub(super) struct Linked {
    pub(super) share: Share,
    transport: Arc<dyn Transport>,
    launches: Vec<Option<Remote>>,
    /// Messages to send after each launch, with the group of the sender.
    posts: Vec<Vec<(usize, Value, usize, Tag)>>,
    /// Messages to send when each phase begins.
    begins: Vec<Vec<(Value, usize, Tag)>>,
    landings: Vec<Option<Landing>>,
    /// True for queues of this rank, per phase.
    local: Vec<Vec<bool>>,
    /// Waits for queues of this rank that queues of other ranks imply, per phase.
    implied: Vec<ImpliedWaits>,
    /// The number of the current run.
    run: u64,
    failure: Mutex<Option<RankError>>,
}

fn no_memory(e: &io::Error) -> ExecError {
    ExecError::Size {
        what: format!("of messages between ranks ({e})"),
    }
}

impl Linked {
    /// Prepares the messages of a program. `group_of` is the group of threads of a place of this rank.
    pub(super) fn new(
        program: &Program,
        seat: RankSeat,
        launches: &Launches,
        group_of: &dyn Fn(Place) -> usize,
    ) -> Result<Linked, ExecError> {
        let RankSeat { share, transport } = seat;
        let local = |p: &Phase| p.queues.iter().map(|q| share.has(q.place)).collect();
        let mut out = Linked {
            launches: Vec::with_capacity(program.launches.len()),
            posts: vec![Vec::new(); program.launches.len()],
            begins: vec![Vec::new(); program.phases.len()],
            landings: Vec::new(),
            local: program.phases.iter().map(local).collect(),
            implied: (program.phases.iter())
                .map(|p| implied_waits(program, p, &|place| share.has(place)))
                .collect(),
            run: 0,
            failure: Mutex::default(),
            share,
            transport,
        };
        for message in out.share.messages() {
            let (value, to, tag) = (message.value, message.to, message.tag);
            if message.from == out.share.rank() {
                match message.after {
                    Some(launch) => {
                        let group = group_of(program.graph.value(value).place);
                        out.posts[launch.index()].push((group, value, to, tag));
                    }
                    None => out.begins[message.phase].push((value, to, tag)),
                }
            }
            let landing = (to == out.share.rank()).then(|| {
                let memory = Memory::new().map_err(|e| no_memory(&e))?;
                Ok::<_, ExecError>(Landing {
                    value,
                    from: message.from,
                    tag,
                    memory,
                    view: View::dense(std::ptr::null_mut(), DType::F32, [0; 4]),
                    claimed: AtomicU64::new(0),
                    arrived: AtomicU64::new(0),
                })
            });
            out.landings.push(landing.transpose()?);
        }
        for i in 0..launches.prepared.len() {
            let launch = Launch::new(i);
            let arrivals: Vec<_> = match out.share.runs(launch) {
                true => out.share.arrivals(launch).collect(),
                false => Vec::new(),
            };
            let joint = out.joint(program, launch, group_of)?;
            let remote = (!arrivals.is_empty() || joint.is_some()).then_some(Remote {
                arrivals,
                views: Vec::new(),
                joint,
            });
            out.launches.push(remote);
        }
        Ok(out)
    }

    fn joint(
        &self,
        program: &Program,
        launch: Launch,
        group_of: &dyn Fn(Place) -> usize,
    ) -> Result<Option<SharedJoint>, ExecError> {
        let Some(blocks) = self.share.blocks(launch) else {
            return Ok(None);
        };
        let places = &program.launch(launch).places;
        let first = blocks.participants(self.share.rank()).next().unwrap_or(0);
        let op = launch_op(program, launch)?.0;
        let joint = Joint::new(op, blocks.clone(), Share::tag(launch));
        Ok(Some(SharedJoint {
            joint: joint.map_err(|e| no_memory(&e))?,
            group: group_of(places[first]),
            done: AtomicU64::new(0),
        }))
    }

    /// Begins a phase: sets the messages' sizes, and sends what exists already.
    pub(super) fn begin(
        &mut self,
        (phase, changed): (usize, bool),
        frame: &Frame<View>,
        launches: &Launches,
    ) -> Result<(), ExecError> {
        self.run += 1;
        if changed {
            self.resize(frame, launches).map_err(|e| no_memory(&e))?;
        }
        for &(value, to, tag) in &self.begins[phase] {
            self.post(&frame.view(value), to, tag)
                .map_err(ExecError::from)?;
        }
        Ok(())
    }

    fn resize(&mut self, frame: &Frame<View>, launches: &Launches) -> io::Result<()> {
        for landing in self.landings.iter_mut().flatten() {
            let View { dtype, ne, .. } = frame.view(landing.value);
            let bytes = bytes_of(&View::dense(std::ptr::null_mut(), dtype, ne));
            landing.view = View::dense(landing.memory.grow(bytes)?, dtype, ne);
        }
        let (rank, landings) = (self.share.rank(), &self.landings);
        for (remote, prepared) in self.launches.iter_mut().zip(&launches.prepared) {
            let Some(remote) = remote else {
                continue;
            };
            let all = prepared.operands + prepared.results;
            let views = &frame.slots()[prepared.slots..][..all];
            remote.views.clear();
            remote.views.extend_from_slice(views);
            for &(operand, message) in &remote.arrivals {
                if let Some(landing) = &landings[message] {
                    remote.views[operand] = landing.view;
                }
            }
            if let Some(shared) = &mut remote.joint {
                shared.joint.resize(rank, &views[..prepared.operands])?;
            }
        }
        Ok(())
    }

    /// True if the queue of the phase is on this rank.
    pub(super) fn is_local(&self, phase: usize, queue: usize) -> bool {
        self.local[phase][queue]
    }

    /// Returns the steps of other queues of this rank to wait for before a step.
    pub(super) fn implied(&self, phase: usize, step: (usize, usize)) -> &[(usize, usize)] {
        self.implied[phase].get(&step).map_or(&[], Vec::as_slice)
    }

    pub(super) fn remote(&self, launch: Launch) -> Option<&Remote> {
        self.launches[launch.index()].as_ref()
    }

    /// Waits until all messages of this rank have left.
    pub(super) fn end(&self) -> Result<(), ExecError> {
        self.transport.flush().map_err(ExecError::from)
    }

    /// Receives a named output that another rank has computed.
    pub(super) fn output(&self, output: usize) -> Option<Result<View, ExecError>> {
        let landing = self.landings[self.share.output(output)?].as_ref()?;
        let got = self.receive(landing).map(|()| landing.view);
        Some(got.map_err(ExecError::from))
    }

    /// Tells the other ranks of an error, because they wait for this rank.
    pub(super) fn fail(&self, cause: &str) {
        self.transport.fail(cause);
    }

    /// Returns the error of another rank, if one has stopped this rank.
    pub(super) fn failure(&self) -> Option<ExecError> {
        let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.clone().map(ExecError::from)
    }

    fn stopped(&self, e: RankError) -> KernelError {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert(e);
        KernelError::Rank
    }

    fn post(&self, view: &View, to: usize, tag: Tag) -> Result<(), RankError> {
        let packed;
        let bytes = match view.flat() {
            // SAFETY: the value is complete, and its launch's successors wait.
            Some(flat) => unsafe { slice(&flat) },
            None => {
                packed = super::io::packed(view);
                &packed
            }
        };
        self.transport.post(Outgoing { to, tag, bytes })
    }

    fn receive(&self, landing: &Landing) -> Result<(), RankError> {
        let incoming = Incoming {
            from: landing.from,
            tag: landing.tag,
            // SAFETY: one worker receives the message of a run, and others wait for it.
            bytes: unsafe { slice_mut(&landing.view) },
        };
        self.transport.exchange(&[], &mut [incoming])
    }

    /// Receives the operands of a launch from other ranks.
    pub(super) fn before(&self, worker: &Worker<'_>, remote: &Remote) -> Result<(), KernelError> {
        for &(_, message) in &remote.arrivals {
            let Some(landing) = self.landings[message]
                .as_ref()
                .filter(|_| worker.index() == 0)
            else {
                continue;
            };
            if landing.claimed.swap(self.run, Ordering::AcqRel) == self.run {
                worker.wait_for(|| landing.arrived.load(Ordering::Acquire) == self.run)?;
                continue;
            }
            self.receive(landing).map_err(|e| self.stopped(e))?;
            landing.arrived.store(self.run, Ordering::Release);
            worker.notify();
        }
        if !remote.arrivals.is_empty() {
            worker.barrier()?;
        }
        match &remote.joint {
            // SAFETY: all operands of this rank are written.
            Some(joint) => unsafe { self.join(worker, joint) },
            None => Ok(()),
        }
    }

    /// Sends the results of a launch to other ranks.
    pub(super) fn after(
        &self,
        worker: &Worker<'_>,
        launch: Launch,
        frame: &Frame<View>,
    ) -> Result<(), KernelError> {
        if worker.index() > 0 {
            return Ok(());
        }
        for &(group, value, to, tag) in &self.posts[launch.index()] {
            if group == worker.device() {
                let posted = self.post(&frame.view(value), to, tag);
                posted.map_err(|e| self.stopped(e))?;
            }
        }
        Ok(())
    }

    /// Exchanges the blocks of a collective.
    ///
    /// # Safety
    /// The operands of this rank are written, and do not change until the collective ends.
    unsafe fn join(&self, worker: &Worker<'_>, shared: &SharedJoint) -> Result<(), KernelError> {
        let done = || shared.done.load(Ordering::Acquire) == self.run;
        if worker.device() != shared.group {
            return worker.wait_for(done);
        }
        // SAFETY: caller's contract.
        unsafe { shared.joint.add(worker)? };
        worker.barrier()?;
        if worker.index() > 0 {
            return worker.wait_for(done);
        }
        // SAFETY: the barrier follows the sums, and only this worker exchanges them.
        let exchanged = unsafe { shared.joint.exchange(&*self.transport) };
        exchanged.map_err(|e| self.stopped(e))?;
        shared.done.store(self.run, Ordering::Release);
        worker.notify();
        Ok(())
    }
}

impl Remote {
    /// Returns the operands and results, with the memory of messages.
    pub(super) fn views(&self) -> &[View] {
        &self.views
    }

    /// Returns the operands of a collective: the blocks of all ranks.
    pub(super) fn parts(&self) -> Option<Parts<'_>> {
        self.joint.as_ref().map(|shared| shared.joint.parts())
    }
}

/// Removes the meetings with queues of other ranks.
pub(super) fn keep_own_meetings(program: &Program, share: &Share, launches: &mut Launches) {
    for (i, launch) in launches.prepared.iter_mut().enumerate() {
        if let Action::Exchange(_, meetings) = &mut launch.action {
            let places = &program.launch(Launch::new(i)).places;
            meetings.retain(|m| share.has(places[m.participant]));
        }
    }
}

/// Tells the other ranks if this thread panics.
pub(super) struct Panics<'a>(pub(super) Option<&'a Linked>);

impl Drop for Panics<'_> {
    fn drop(&mut self) {
        if let Some(linked) = self.0.filter(|_| std::thread::panicking()) {
            linked.fail("a worker panicked");
        }
    }
}
