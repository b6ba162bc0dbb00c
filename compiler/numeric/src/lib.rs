//! # tpc-numeric: a plan checked by numbers
//!
//! [`shrink`] makes a planned model small and keeps the splits of its plan. [`compare`] gives the small model random
//! weights and runs it on the batches of a [`Feed`]: once whole on one place, and once as the programs of its devices.
//!
//! | code | error |
//! |---|---|
//! | TPC0392 | the model cannot be made small, or cannot be run |
//! | TPC0394 | the outputs of the programs differ; the diagnostic names the first value on a device that differs |
//! | TPC0395 | the run needs more memory or arithmetic than a command may spend; `need` counts both before it allocates |
//!
//! Everything is deterministic: the same plan gives the same weights, batches and outputs. The interpreter gives every
//! place its own memory. Agreement therefore also shows that devices read only values that they hold.

mod compare;
mod difference;
mod feed;
mod need;
mod weights;

pub use compare::{Agreement, compare, compare_within, shrink};
pub use difference::TOLERANCE;
pub use feed::Feed;
