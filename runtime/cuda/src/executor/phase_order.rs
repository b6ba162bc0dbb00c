//! The nodes of a phase in the order of its queues, each with the nodes that it waits for.

use tpc_ir::program::{Phase, Program};
use tpc_ir::{Launch, Place};
use tpc_runtime::ExecError;

use super::accesses::Accesses;
use super::launches::{KernelRun, LaunchTask, Launches};
use super::messages::{MessageWork, is_here};
use super::node_order::NodeOrder;
use super::phase_graph::KernelPosition;
use super::queue_order::{OrderedStep, ordered_steps};

/// Takes the nodes of a phase, in an order in which each node follows the nodes that it waits for.
pub(super) trait NodeSink {
    /// Adds a kernel that the batch shape needs, and returns its node; `None` after an error.
    fn kernel(&mut self, at: KernelPosition, run: &KernelRun, after: &[usize]) -> Option<usize>;

    /// Adds a host op, and returns its node.
    fn host(&mut self, launch: Launch, op: usize, after: &[usize]) -> usize;

    /// Adds a message between ranks, and returns its node.
    fn message(&mut self, launch: Launch, work: MessageWork, after: &[usize]) -> usize;
}

#[derive(Clone, Debug, Default)]
struct QueueProgress {
    /// The nodes that the next node waits for.
    last: Vec<usize>,
    /// The value of `last` after each step.
    after: Vec<Vec<usize>>,
}

struct Order<'a, S> {
    program: &'a Program,
    launches: &'a Launches,
    phase: &'a Phase,
    shape: usize,
    queues: Vec<QueueProgress>,
    order: NodeOrder,
    /// The last message between ranks.
    message: Vec<usize>,
    sink: &'a mut S,
}

/// Passes all nodes of a phase to `sink`. Returns an error if the queues deadlock.
pub(super) fn order_nodes<S: NodeSink>(
    (program, launches): (&Program, &Launches),
    (phase, shape): (&Phase, usize),
    sink: &mut S,
) -> Result<(), ExecError> {
    let queues = phase.queues.len();
    let mut order = Order {
        program,
        launches,
        phase,
        shape,
        // Messages between ranks have a queue of their own.
        order: NodeOrder::new(queues + 1),
        queues: vec![QueueProgress::default(); queues],
        message: Vec::new(),
        sink,
    };
    for step in ordered_steps(program, phase)? {
        match step {
            OrderedStep::Wait { queue, on, steps } => order.wait(queue, (on, steps)),
            OrderedStep::Launch { launch, meeting } => order.launch(launch, meeting),
        }
    }
    Ok(())
}

impl<S: NodeSink> Order<'_, S> {
    fn wait(&mut self, q: usize, (on, steps): (usize, usize)) {
        if let Some(before) = steps.checked_sub(1) {
            let nodes = self.queues[on].after[before].clone();
            join(&mut self.queues[q].last, &nodes);
        }
        let last = self.queues[q].last.clone();
        self.queues[q].after.push(last);
    }

    fn launch(&mut self, launch: Launch, meeting: Vec<usize>) {
        let lasts = meeting
            .iter()
            .map(|m| self.queues[*m].last.clone())
            .collect();
        let ends = self.nodes(launch, &meeting, lasts);
        let mut all_ends = Vec::new();
        ends.iter().for_each(|own| join(&mut all_ends, own));
        let share = self.launches.share.as_ref();
        for (m, own) in meeting.into_iter().zip(ends) {
            // A wait for one participant is a wait for all. The queue of another rank has no nodes of its own here, so
            // its last nodes are those of all participants.
            let here = is_here(share, self.phase.queues[m].place);
            self.queues[m].after.push(all_ends.clone());
            self.queues[m].last = if here { own } else { all_ends.clone() };
        }
    }

    /// Adds the nodes of a launch after the last nodes of each queue in `meeting`. Returns the new last nodes.
    fn nodes(
        &mut self,
        launch: Launch,
        meeting: &[usize],
        mut lasts: Vec<Vec<usize>>,
    ) -> Vec<Vec<usize>> {
        let launches = self.launches;
        for stage in 0..launches.stages(launch) {
            let mut before = Vec::new();
            lasts.iter().for_each(|own| join(&mut before, own));
            for (t, task) in launches.tasks[launch.index()].iter().enumerate() {
                if task.stage() != stage {
                    continue;
                }
                let m = participant(task, self.phase, meeting);
                let queue = meeting[m];
                let mut last = match stage == 0 && self.reads_own(launch, task) {
                    true => lasts[m].clone(),
                    false => before.clone(),
                };
                // A device may have several tasks in a stage.
                join(&mut last, &lasts[m]);
                match task {
                    LaunchTask::Device {
                        device, kernels, ..
                    } => {
                        for (r, run) in kernels.iter().enumerate() {
                            let at = KernelPosition {
                                launch,
                                device: *device,
                                task: t,
                                run: r,
                            };
                            self.kernel((at, run), (queue, meeting.len() > 1), &mut last);
                        }
                    }
                    LaunchTask::Host { op, slots, .. } => {
                        let (_, operands, results) = &launches.hosted[*op];
                        let counts = (operands.len(), results.len());
                        let of = (self.program, launches);
                        let accesses = Accesses::of(of, slots.clone(), counts, self.shape);
                        self.order.push(queue, &accesses, &mut last);
                        if launches.reads_messages(slots) {
                            self.order.leave_open(accesses);
                        }
                        last = vec![self.sink.host(launch, *op, &last)];
                    }
                }
                lasts[m] = last;
            }
            for task in launches.messages(launch) {
                if task.stage == stage {
                    self.message((launch, task.work), &before, &mut lasts);
                }
            }
        }
        lasts
    }

    /// Adds a message after the nodes in `before` and the last message.
    fn message(
        &mut self,
        (launch, work): (Launch, MessageWork),
        before: &[usize],
        lasts: &mut [Vec<usize>],
    ) {
        let mut after = before.to_vec();
        join(&mut after, &self.message);
        let of = (self.program, self.launches);
        let accesses = Accesses::of_message(of, work, self.shape);
        self.order.push(self.queues.len(), &accesses, &mut after);
        self.order.leave_open(accesses);
        let node = self.sink.message(launch, work, &after);
        self.message = vec![node];
        match work {
            MessageWork::Post(_) => {}
            MessageWork::Receive(_) | MessageWork::Exchange(_) => {
                lasts.iter_mut().for_each(|last| *last = vec![node]);
            }
        }
    }

    /// Adds a kernel after the nodes in `last`, and makes it the last node.
    fn kernel(
        &mut self,
        (at, run): (KernelPosition, &KernelRun),
        (queue, is_shared): (usize, bool),
        last: &mut Vec<usize>,
    ) {
        if run.kernels[self.shape].is_none() {
            return;
        }
        let counts = (run.operands, run.results);
        let of = (self.program, self.launches);
        let accesses = Accesses::of(of, run.slots.clone(), counts, self.shape);
        self.order.push(queue, &accesses, last);
        if is_shared || self.launches.reads_messages(&run.slots) {
            self.order.leave_open(accesses);
        }
        if let Some(node) = self.sink.kernel(at, run, last) {
            *last = vec![node];
        }
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

fn join(nodes: &mut Vec<usize>, more: &[usize]) {
    for node in more {
        if !nodes.contains(node) {
            nodes.push(*node);
        }
    }
}
