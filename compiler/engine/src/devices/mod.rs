//! The devices of this machine.
//!
//! - `cards` binds the devices of a plan to graphics cards;
//! - `cores` counts the CPU cores that this process may use;
//! - `host_memory` reads the size of the machine's memory.

pub mod cards;
pub mod cores;
pub mod host_memory;
