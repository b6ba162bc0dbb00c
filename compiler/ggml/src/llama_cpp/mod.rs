//! Command lines of llama.cpp: the options that decide where tensors and caches are.
//!
//! - `options` lists the options of the programs, each with its arguments and the setting that it changes;
//! - `command` parses a line, with the environment variables before it;
//! - `limit_codes` declares the codes of what llama.cpp's tensor split does not serve;
//! - `limits` has what its tensor split, and that of ik_llama.cpp, does not serve;
//! - `translate` says the same in tpc's options;
//! - `measurement` has what llama.cpp was seen to do with models of an architecture.

mod command;
pub mod limit_codes;
mod limits;
mod measurement;
mod options;
mod translate;

pub use command::{CommandLine, ParsedOption};
pub use limits::{Limit, TensorSplitUse, graph_split_limit, tensor_split_limit};
pub use measurement::{Measurement, Observation, measurement};
pub use options::{Arity, OPTIONS, OptionSpec, Setting};
pub use translate::{TpcCommand, devices_named, ffn_on_host, quoted};
