//! # tpc-numeric: checks a plan by running a small model
//!
//! [`shrink`] makes a planned model small, with the same splits. [`compare`] runs it with random weights on the
//! batches of a [`Feed`]: once as a whole, and once as the programs of the devices.
//!
//! | code | error |
//! |---|---|
//! | TPC0392 | the model cannot be made small, or cannot be run |
//! | TPC0394 | the programs' outputs differ; the diagnostic names the first value that differs |
//! | TPC0395 | the run would exceed a command's memory or arithmetic |
//!
//! A plan always gives the same weights, batches and outputs. Each place has its own memory, so equal outputs also
//! show that devices read only values that they hold.

pub mod bisect;
mod compare;
mod difference;
mod feed;
mod need;
mod weights;

pub use compare::{Agreement, compare, compare_within, shrink};
pub use difference::TOLERANCE;
pub use feed::Feed;
