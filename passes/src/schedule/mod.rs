//! Schedule: phases, queues, and the waits between them.
//!
//! Launches run in program order within a phase and a place, but in layers in which places work for each other: there a place
//! does what needs no other before it waits. Between places an order is needed where one place reads what another wrote, and where
//! one overwrites what another reads: there a queue waits.

mod overlap;
mod phases;
mod print;
mod waits;

pub use phases::{Order, order};
pub use print::print;
pub use waits::queues;
