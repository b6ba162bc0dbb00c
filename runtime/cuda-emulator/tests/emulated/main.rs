//! Graphs of kernels on emulated devices: results, orders and errors.

mod graphs;
mod limits;
#[path = "../support/mod.rs"]
mod support;
