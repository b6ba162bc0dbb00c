//! This machine's devices: `cards` binds a plan's devices to graphics cards, `cores` counts CPU cores, `host_memory`
//! reads memory sizes.

pub mod cards;
pub mod cores;
pub mod host_memory;
