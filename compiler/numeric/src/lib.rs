//! # tpc-numeric: a plan checked by numbers
//!
//! A planned model is made small with the splits of its plan ([`shrink`]), given random weights, and run twice: whole on
//! one place, and as the programs of its devices ([`compare`]). The batches are those of a [`Feed`]. Programs that
//! answer something else than the model are TPC0394, and the diagnostic names the first value on a device that differs;
//! a model that cannot be made small or run is TPC0392, and one that takes more memory or arithmetic than a command may
//! spend is TPC0395: `need` counts both before anything is allocated.
//!
//! Everything is deterministic: the same plan gives the same weights, batches and answers. The interpreter gives every
//! place a memory of its own, so agreement also says that no device reads what it does not hold.

mod compare;
mod difference;
mod feed;
mod need;
mod weights;

pub use compare::{Agreement, compare, compare_within, shrink};
pub use difference::TOLERANCE;
pub use feed::Feed;
