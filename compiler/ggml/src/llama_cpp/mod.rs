//! Command lines of llama.cpp: what their options ask for, as far as it decides where tensors and caches are.
//!
//! `flags` lists the options that the programs take, with the number of their arguments; `command` reads a line, the
//! environment variables before it included; `translate` says the same in tpc's options. What the engine makes of it,
//! where that is known by measurement, is in `measured`.

mod command;
mod flags;
mod measured;
mod translate;

pub use command::{CommandLine, Given};
pub use flags::{FLAGS, Flag, Meaning, Takes};
pub use measured::{Measured, Outcome, measured};
pub use translate::{Equivalent, devices_named, quoted};
