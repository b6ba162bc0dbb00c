//! The order between queues of one process that only holds by way of another process.
//!
//! A program states no wait that others imply: if queue A waits for B, and B for C, then A follows C. If B is in another
//! process, A does not wait for it, so A must wait for C itself.

use std::collections::BTreeMap;

use tpc_ir::Place;
use tpc_ir::program::{Phase, Program, Step};

/// Steps of other queues of this process to wait for, by queue and step.
pub(super) type ImpliedWaits = BTreeMap<(usize, usize), Vec<(usize, usize)>>;

/// The number of completed steps of each queue.
type Clock = Vec<usize>;

fn join(a: &mut Clock, b: &Clock) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = (*a).max(*b));
}

struct Order<'a> {
    program: &'a Program,
    phase: &'a Phase,
    here: Vec<bool>,
    done: Clock,
    /// Completed steps of all queues at each step of a queue: in the program, and by the waits of this process.
    real: Vec<Vec<Clock>>,
    known: Vec<Vec<Clock>>,
    waits: ImpliedWaits,
}

/// Returns the waits of a phase that only queues of other processes imply. `here` is true for places of this process.
pub(super) fn implied_waits(
    program: &Program,
    phase: &Phase,
    here: &dyn Fn(Place) -> bool,
) -> ImpliedWaits {
    let n = phase.queues.len();
    let start = vec![vec![vec![0; n]]; n];
    let mut order = Order {
        program,
        phase,
        here: phase.queues.iter().map(|q| here(q.place)).collect(),
        done: vec![0; n],
        real: start.clone(),
        known: start,
        waits: ImpliedWaits::new(),
    };
    let mut moved = true;
    while moved {
        moved = false;
        for queue in 0..n {
            while order.advance(queue) {
                moved = true;
            }
        }
    }
    order.waits
}

impl Order<'_> {
    /// Takes the next step of a queue, if it can run.
    fn advance(&mut self, queue: usize) -> bool {
        let step = self.phase.queues[queue].steps.get(self.done[queue]);
        match step {
            None => false,
            Some(&Step::Wait {
                queue: other,
                steps,
            }) => {
                if self.done[other] < steps {
                    return false;
                }
                self.meet(&[queue], &[(other, steps)]);
                true
            }
            Some(step @ Step::Launch(launch)) => {
                let mut all = Vec::new();
                for place in &self.program.launch(*launch).places {
                    let found = self.phase.queues.iter().position(|q| q.place == *place);
                    let Some(q) = found else { return false };
                    if self.phase.queues[q].steps.get(self.done[q]) != Some(step) {
                        return false;
                    }
                    all.push(q);
                }
                let met: Vec<(usize, usize)> = all.iter().map(|&q| (q, self.done[q])).collect();
                self.meet(&all, &met);
                true
            }
        }
    }

    /// Completes a step of `queues` that follows these steps of other queues.
    fn meet(&mut self, queues: &[usize], after: &[(usize, usize)]) {
        let mut real = vec![0; self.done.len()];
        let mut known = real.clone();
        for &(q, steps) in after {
            join(&mut real, &self.real[q][steps]);
            if self.here[q] {
                join(&mut known, &self.known[q][steps]);
            }
        }
        let each: Vec<(Clock, Clock)> = queues
            .iter()
            .map(|&q| {
                let (mut real, mut known) = (real.clone(), known.clone());
                join(&mut real, &self.real[q][self.done[q]]);
                join(&mut known, &self.known[q][self.done[q]]);
                (real, known)
            })
            .collect();
        for (&q, (mut real, mut known)) in queues.iter().zip(each) {
            let step = self.done[q];
            if self.here[q] {
                for l in (0..real.len()).filter(|&l| l != q && self.here[l]) {
                    if real[l] > known[l] {
                        self.waits.entry((q, step)).or_default().push((l, real[l]));
                        known[l] = real[l];
                        join(&mut known, &self.known[l][real[l]].clone());
                    }
                }
            }
            real[q] = step + 1;
            known[q] = step + 1;
            self.real[q].push(real);
            self.known[q].push(known);
            self.done[q] = step + 1;
        }
    }
}
