//! # CUDA devices emulated by the CPU
//!
//! [`EmulatedDriver`] is a [`Driver`](tpc_cuda::Driver) without a graphics card.
//!
//! The C++ compiler of the host compiles the unchanged kernel sources. Each CUDA thread is a fiber that runs until it
//! waits. Each device has separate memory. Only graph edges order nodes; the seed selects one of the possible orders.
//!
//! The checked [build](Build) checks bounds, device and alignment of every access, and detects races. Stores are not
//! delayed: a program without races gives the same result in every memory model.

#![expect(
    unsafe_code,
    reason = "it runs compiled code on its own stacks and memory"
)]

mod abi;
mod access_checker;
mod block;
mod block_runner;
mod calls;
mod compiler;
mod copies;
mod driver;
mod failing_driver;
mod fault;
mod faulty_driver;
mod fiber;
mod graph;
mod image;
mod memory;
mod options;
mod race;
mod random;
mod run_state;
mod scheduler;
mod thread;

pub use compiler::Build;
pub use driver::EmulatedDriver;
pub use failing_driver::{FailingDriver, LaunchFault, PlantedLaunchFault};
pub use faulty_driver::{FaultyDriver, PlantedFault};
pub use options::{EmulatedOptions, Links};
