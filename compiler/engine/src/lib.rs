//! # tpc-engine: models that run
//!
//! A program without a command line plans, loads and generates with this crate. `docs/examples` has three that do.
//!
//! - [`PreparedModel`] is a model that was planned, or an artefact; [`artefact`] says whether one fits this machine;
//! - [`Loader`] loads it into one of the executors ([`ExecutorKind`]) and returns a session;
//! - [`generate`] continues texts in a session, several side by side;
//! - [`session_file`] keeps a session for a later run;
//! - [`rpc`] computes the graphs of llama.cpp's programs;
//! - [`devices`] knows the cards, cores and memory of this machine.

pub mod artefact;
mod batch_shapes;
mod codes;
pub mod devices;
mod error;
mod executor;
pub mod generate;
mod loader;
mod observer;
mod prepared;
pub mod rpc;
pub mod session_file;
mod vocabulary;
mod weights;

pub use codes::CODES;
pub use error::{Error, ErrorKind, execution_diagnostic};
pub use executor::{ExecutorKind, ExecutorOptions, LoadedExecutor, threads};
pub use loader::{AnySession, Loader};
pub use observer::Observer;
pub use prepared::{PreparedModel, check_types, plan, program, sequences};
pub use vocabulary::check_tokens;
