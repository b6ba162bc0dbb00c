//! Schedule: phases, queues, and the waits between them.
//!
//! Launches run in program order within a phase and a place. Between places an order is needed where one place reads what
//! another wrote, and where one overwrites what another reads: there a queue waits.

mod phases;
mod waits;

pub use phases::{Order, order};
pub use waits::queues;
