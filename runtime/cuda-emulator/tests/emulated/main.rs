//! Graphs on emulated devices: results, orders, errors.

mod graphs;
mod limits;
#[path = "../support/mod.rs"]
mod support;
