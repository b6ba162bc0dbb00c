#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) queue: usize,
    pub(super) step: usize,
}

/// The number of completed steps of each queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clock(pub(super) Vec<usize>);

impl Clock {
    pub(super) fn new(queues: usize) -> Clock {
        Clock(vec![0; queues])
    }

    pub(super) fn has_seen(&self, done: Done) -> bool {
        self.0.get(done.queue).is_some_and(|&n| n > done.step)
    }

    pub(super) fn join(&mut self, other: &Clock) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = (*a).max(*b);
        }
    }
}
