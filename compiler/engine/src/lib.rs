//! # tpc-engine: runs models
//!
//! Programs use this crate to plan and load models and to generate text; `docs/examples` has three such programs.
//!
//! - [`PreparedModel`] is a planned model or an artefact; [`artefact`] checks that an artefact fits this machine;
//! - [`Loader`] loads it into an executor ([`ExecutorKind`]) and returns a session;
//! - [`generate`] continues several texts in one session, and [`embed`] computes embeddings of texts;
//! - [`perplexity`] scores a text, and compares two models' predictions of it;
//! - [`prefix`] keeps the caches of computed prefixes for later sequences;
//! - [`session_file`] saves a session and restores it in a later run;
//! - [`rpc`] runs the graphs of llama.cpp's programs;
//! - [`ranks`] runs a plan in several processes;
//! - [`replay`] runs a launch of a dump alone;
//! - [`step`] predicts the times of kernels on cards;
//! - [`doctor`] checks that tpc works on this machine;
//! - [`devices`] lists this machine's cards and counts its cores and memory.

pub mod artefact;
mod batch_shapes;
mod codes;
mod damaged;
pub mod devices;
pub mod doctor;
pub mod embed;
mod error;
mod executor;
pub mod generate;
mod loader;
mod logits;
mod observer;
pub mod perplexity;
pub mod prefix;
mod prepared;
mod rank_executor;
pub mod ranks;
pub mod replay;
pub mod rpc;
pub mod session_file;
pub mod step;
mod vocabulary;
mod weights;

pub use codes::{CODES, OTHER_DRAFT};
pub use damaged::{NonFinite, damage, non_finite};
pub use error::{Error, ErrorKind, execution_diagnostic};
pub use executor::{DumpOnFault, ExecutorKind, ExecutorOptions, LoadedExecutor, threads};
pub use loader::{AnySession, Loader};
pub use logits::as_f32;
pub use observer::Observer;
pub use prepared::{PreparedModel, check_types, plan, program, sequences};
pub use rank_executor::serve_rank;
pub use tpc_cpu::product::Isa;
pub use tpc_cuda_emulator::PlantedLaunchFault;
pub use vocabulary::check_tokens;
