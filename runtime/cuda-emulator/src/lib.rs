//! # CUDA devices that the CPU emulates
//!
//! [`EmulatedDriver`] is a [`Driver`](tpc_cuda::Driver) that needs no card.
//!
//! The host's C++ compiler compiles the same sources that a card would run. A CUDA thread is a fiber: it runs until it waits for
//! others, which is all that a kernel can see of the order of threads. Each device has memory of its own. The edges of a graph
//! are the only order; whatever else may happen in any order does so in one that depends on the seed.
//!
//! There are two [builds](Build) of a kernel. The plain one is for results. In the checked one every load and store is looked
//! at: bounds, device, alignment, and whether another access to the same bytes could come before or after it. The order that
//! the checks know is that of the edges, of barriers, and of flags that are released and acquired. A program in which they find
//! no race behaves on any memory as if its accesses came one by one, so stores need not be delayed to see what a card would do.

#![expect(
    unsafe_code,
    reason = "it runs compiled code on stacks and in memory of its own"
)]

mod abi;
mod access_checker;
mod block;
mod block_runner;
mod calls;
mod compiler;
mod copies;
mod driver;
mod fault;
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
pub use options::{EmulatedOptions, Links};
