//! Graphs of kernels on emulated devices: results, orders and errors.

mod graphs;
#[path = "../support/mod.rs"]
mod support;
