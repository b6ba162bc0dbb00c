//! Checks that tpc works on this machine.
//!
//! A [`Setup`] describes the machine: its cards, or emulated devices. [`run`] runs the checks of the table (`table`)
//! and returns a [`Report`]. Each section has a module with a function per check; the checks do not print.

mod all_reduce;
mod check;
mod copies;
mod driver;
mod flags;
mod glibc;
mod kernels;
mod measurements;
mod memory;
mod models;
mod peers;
mod races;
mod report;
mod runner;
mod setup;
mod small_model;
mod system;
mod table;
mod topology;

pub use check::Setup;
pub use report::{Checked, Finding, Report, Section, Status, Verdict};
pub use runner::{Options, run};
pub use setup::{Emulation, cards, emulated};
pub use topology::topology;
