//! The nodes of a phase in the order of its queues, each with the nodes that it waits for.

use tpc_ir::Launch;
use tpc_ir::program::{Phase, Program, Queue, Step};
use tpc_runtime::ExecError;

use super::launches::{KernelRun, LaunchTask, Launches};
use super::phase_graph::KernelPosition;

/// Takes the nodes of a phase, in an order in which each node follows the nodes that it waits for.
pub(super) trait NodeSink {
    /// Adds a kernel, and returns its node; `None` if the batch shape does not need the kernel.
    fn kernel(&mut self, at: KernelPosition, run: &KernelRun, after: &[usize]) -> Option<usize>;

    /// Adds a host op, and returns its node.
    fn host(&mut self, launch: Launch, op: usize, after: &[usize]) -> usize;
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
    queues: Vec<QueueProgress>,
    sink: &'a mut S,
}

/// Passes all nodes of a phase to `sink`. Returns an error if the queues deadlock.
pub(super) fn order_nodes<S: NodeSink>(
    (program, launches): (&Program, &Launches),
    phase: &Phase,
    sink: &mut S,
) -> Result<(), ExecError> {
    let mut order = Order {
        program,
        launches,
        phase,
        queues: vec![QueueProgress::default(); phase.queues.len()],
        sink,
    };
    let mut moved = true;
    while moved {
        moved = false;
        for q in 0..phase.queues.len() {
            while order.step(q) {
                moved = true;
            }
        }
    }
    let ended = |(queue, done): (&Queue, &QueueProgress)| queue.steps.len() == done.after.len();
    match phase.queues.iter().zip(&order.queues).all(ended) {
        true => Ok(()),
        false => Err(ExecError::Malformed {
            what: "the queues deadlock".into(),
        }),
    }
}

impl<S: NodeSink> Order<'_, S> {
    /// Runs the next step of a queue. Returns false if the queue has ended or waits for other queues.
    fn step(&mut self, q: usize) -> bool {
        let queues = &mut self.queues;
        let Some(step) = self.phase.queues[q].steps.get(queues[q].after.len()) else {
            return false;
        };
        let launch = match *step {
            Step::Wait { queue, steps } => {
                if queues[queue].after.len() < steps {
                    return false;
                }
                if let Some(before) = steps.checked_sub(1) {
                    let nodes = queues[queue].after[before].clone();
                    join(&mut queues[q].last, &nodes);
                }
                let last = queues[q].last.clone();
                queues[q].after.push(last);
                return true;
            }
            Step::Launch(launch) => launch,
        };
        let mut meeting = Vec::new();
        for place in &self.program.launch(launch).places {
            let at = self.phase.queues.iter().position(|q| q.place == *place);
            let Some(at) = at else { return false };
            if self.phase.queues[at].steps.get(queues[at].after.len()) != Some(step) {
                return false;
            }
            meeting.push(at);
        }
        let mut before = Vec::new();
        for m in &meeting {
            join(&mut before, &queues[*m].last);
        }
        let ends = self.nodes(launch, before);
        for m in meeting {
            self.queues[m].last.clone_from(&ends);
            self.queues[m].after.push(ends.clone());
        }
        true
    }

    /// Adds the nodes of a launch, and returns its last nodes.
    fn nodes(&mut self, launch: Launch, mut before: Vec<usize>) -> Vec<usize> {
        for stage in 0..2 {
            let mut ends = Vec::new();
            for (t, task) in self.launches.tasks[launch.index()].iter().enumerate() {
                match task {
                    LaunchTask::Device {
                        device,
                        stage: own,
                        kernels,
                    } if *own == stage => {
                        let mut last = before.clone();
                        for (r, run) in kernels.iter().enumerate() {
                            let at = KernelPosition {
                                launch,
                                device: *device,
                                task: t,
                                run: r,
                            };
                            last = self.sink.kernel(at, run, &last).map_or(last, |n| vec![n]);
                        }
                        join(&mut ends, &last);
                    }
                    LaunchTask::Host { op, .. } if stage == 0 => {
                        ends.push(self.sink.host(launch, *op, &before));
                    }
                    LaunchTask::Device { .. } | LaunchTask::Host { .. } => {}
                }
            }
            if !ends.is_empty() {
                before = ends;
            }
        }
        before
    }
}

fn join(nodes: &mut Vec<usize>, more: &[usize]) {
    for node in more {
        if !nodes.contains(node) {
            nodes.push(*node);
        }
    }
}
