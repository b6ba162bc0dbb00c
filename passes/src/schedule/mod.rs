//! Schedule: phases, queues, and the waits between them.
//!
//! Launches run in program order within a phase and a place, except in layers with work of one place for another:
//! there, a place first runs the launches that do not need other places. A queue waits for another place if it reads a
//! value that the other writes, or overwrites a value that the other reads.

mod overlap;
mod phases;
mod print;
mod waits;

pub use phases::{Order, order};
pub use print::print;
pub use waits::queues;
