//! Order of the steps of all queues. It depends only on the program.

use tpc_ir::Launch;
use tpc_ir::program::{Phase, Program, Queue, Step};
use tpc_runtime::ExecError;

/// A step of a phase.
#[derive(Clone, Debug)]
pub(super) enum OrderedStep {
    /// A queue waits until another has done a number of steps.
    Wait {
        queue: usize,
        on: usize,
        steps: usize,
    },
    /// A launch in the queues of its places.
    Launch { launch: Launch, meeting: Vec<usize> },
}

/// Returns the steps of a phase in an order that the queues allow. The order depends only on the program, so all ranks
/// have the same. Returns an error if the queues deadlock.
pub(super) fn ordered_steps(
    program: &Program,
    phase: &Phase,
) -> Result<Vec<OrderedStep>, ExecError> {
    let mut done = vec![0; phase.queues.len()];
    let mut out = Vec::new();
    let mut moved = true;
    while moved {
        moved = false;
        for q in 0..phase.queues.len() {
            while let Some(step) = next_step((program, phase), q, &mut done) {
                out.push(step);
                moved = true;
            }
        }
    }
    let ended = |(queue, done): (&Queue, &usize)| queue.steps.len() == *done;
    match phase.queues.iter().zip(&done).all(ended) {
        true => Ok(out),
        false => Err(ExecError::Malformed {
            what: "the queues deadlock".into(),
        }),
    }
}

/// Returns the next step of a queue; `None` if the queue has ended or waits for other queues.
fn next_step(
    (program, phase): (&Program, &Phase),
    q: usize,
    done: &mut [usize],
) -> Option<OrderedStep> {
    let step = phase.queues[q].steps.get(done[q])?;
    match *step {
        Step::Wait { queue, steps } => {
            if done[queue] < steps {
                return None;
            }
            done[q] += 1;
            Some(OrderedStep::Wait {
                queue: q,
                on: queue,
                steps,
            })
        }
        Step::Launch(launch) => {
            let mut meeting = Vec::new();
            for place in &program.launch(launch).places {
                let at = phase.queues.iter().position(|q| q.place == *place)?;
                if phase.queues[at].steps.get(done[at]) != Some(step) {
                    return None;
                }
                meeting.push(at);
            }
            meeting.iter().for_each(|at| done[*at] += 1);
            Some(OrderedStep::Launch { launch, meeting })
        }
    }
}

/// Returns all launches of a program in the order of their nodes.
pub(super) fn launch_order(program: &Program) -> Result<Vec<Launch>, ExecError> {
    let mut out = Vec::new();
    for phase in &program.phases {
        let steps = ordered_steps(program, phase)?.into_iter();
        out.extend(steps.filter_map(|step| match step {
            OrderedStep::Launch { launch, .. } => Some(launch),
            OrderedStep::Wait { .. } => None,
        }));
    }
    Ok(out)
}
