//! The devices of this machine: graphics cards, CPU cores and memory.

pub mod cards;
pub mod cores;
pub mod host_memory;
pub mod numa;
