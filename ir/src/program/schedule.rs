//! The order of work.

use crate::entity::Launch;
use crate::place::Place;

/// A step of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A launch, which runs to its end. A collective waits until all its participants have arrived, and ends on all at
    /// once.
    Launch(Launch),
    /// The queue waits until another queue of the phase has completed this number of steps.
    Wait {
        /// The other queue, by its position in the phase.
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

/// A part of a batch. All queues start together, after the phase before it has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Phase {
    /// The number of tokens after the batch that it needs.
    pub lookahead: u32,
    /// The queues.
    pub queues: Vec<Queue>,
}
