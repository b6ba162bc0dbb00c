use crate::entity::Launch;
use crate::place::Place;

/// A step of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A launch, run to completion. Participants of a collective wait for each other and end together.
    Launch(Launch),
    /// Waits until another queue of the phase has completed this number of steps.
    Wait {
        /// The other queue's position in the phase.
        queue: usize,
        /// The number of completed steps.
        steps: usize,
    },
}

/// The steps of one place, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// The place.
    pub place: Place,
    /// The steps.
    pub steps: Vec<Step>,
}

/// A part of a batch. All queues start when the previous phase has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The number of tokens needed after the batch.
    pub lookahead: u32,
    /// The queues.
    pub queues: Vec<Queue>,
}
