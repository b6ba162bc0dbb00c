//! The devices of this machine.
//!
//! - `cards` binds the devices of a plan to graphics cards;
//! - `cores` counts the processor's cores that this process may use;
//! - `host_memory` reads the memory of the machine.

pub mod cards;
pub mod cores;
pub mod host_memory;
