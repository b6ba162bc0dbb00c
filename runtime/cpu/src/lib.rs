//! # Kernels of the CPU executor
//!
//! A program gives every value an address in its device's arena. A *launch* runs one [`Kernel`] on all threads of the
//! device: each [`Worker`] of a [`Team`] calls [`Kernel::run`] with the same [`View`]s and computes its share.
//!
//! | type       | meaning                                                                              |
//! |------------|-------------------------------------------------------------------------------------|
//! | [`View`]   | a tensor in memory: address, element type, sizes, strides in bytes                   |
//! | [`Team`]   | threads that spin and then sleep, in one group per device                            |
//! | [`Kernel`] | an op with known attributes and element types; runs without allocating               |
//!
//! [`CpuExecutor`] runs a whole program.
//!
//! [`tpc_runtime::eval`] defines every op; kernels compute in f32. Results have the same bits for any number of
//! workers and any instruction set: workers divide rows, heads or columns, no sum crosses workers, and every sum has
//! a fixed order.

mod bell;
mod blocks;
mod ceilings;
mod core_sets;
mod crowd;
mod elements;
mod error;
mod executor;
mod kernel;
mod lanes;
mod launch;
mod math;
mod ops;
mod pages;
mod pieces;
mod pin;
pub mod product;
mod simd;
mod target;
mod team;
mod view;
mod worker;

/// Host ops, inputs and outputs for executors of other devices.
pub mod host {
    pub use crate::executor::shared::*;
    pub use crate::ops::size_of;
}

pub use ceilings::Ceilings;
pub use core_sets::CoreSets;
pub use error::{KernelError, TeamError, Unsupported};
pub use executor::{CpuExecutor, CpuOptions};
pub use kernel::Kernel;
pub use launch::Sizes;
pub use target::{CpuTarget, ROWS16};
pub use team::Team;
pub use view::View;
pub use worker::Worker;
