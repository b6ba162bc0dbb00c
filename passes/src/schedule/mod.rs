//! Schedule: phases, queues, and waits between queues.
//!
//! Launches run in program order within a phase and a place. In layers in which places work for each other, a place
//! first runs the launches that do not need other places. A queue waits for another place if it reads a value that the
//! place writes, or overwrites a value that the place reads.

mod overlap;
mod phases;
mod print;
mod waits;

pub use phases::{Order, order};
pub use print::print;
pub use waits::queues;
