//! Graphs of kernels on emulated devices: results, orders and errors.

mod graphs;
mod support;
