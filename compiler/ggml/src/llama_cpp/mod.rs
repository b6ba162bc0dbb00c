//! Command lines of llama.cpp: the options that decide the placement of tensors and caches.
//!
//! - `option_spec` describes an option: its spellings, its arguments and the setting that it changes;
//! - `options` lists the options of the programs; `groups` has the options that tpc's own parser shares;
//! - `parsed_option` is an option of a line;
//! - `command` parses a line, with the environment variables before it;
//! - `beside` finds the files that a command loads in addition to the model;
//! - `devices` counts the devices of a line;
//! - `programs` identifies the program and has the options specific to one program; `ik_options` has the options of
//!   `ik_llama.cpp`;
//! - `fault` finds values that a program rejects, with the number options from `numbers`;
//! - `each` expands the lists of a benchmark;
//! - `context` computes the context size, and lists the settings that llama.cpp chooses by itself;
//! - `rope` has the rotation scaling that a line asks for;
//! - `limit_codes` declares the codes for the limits of llama.cpp's tensor split;
//! - `translate` converts a line to tpc's options;
//! - `memory_words` has the options that affect only llama.cpp's memory.

mod beside;
mod command;
mod context;
mod devices;
mod each;
mod fault;
pub mod groups;
mod ik_options;
pub mod limit_codes;
mod memory_words;
mod numbers;
mod option_spec;
mod options;
mod parsed_option;
mod programs;
mod rope;
#[cfg(test)]
mod testing;
mod translate;

pub use beside::{DraftFile, ProjectorFile};
pub use command::CommandLine;
pub use context::{Context, FittedSettings};
pub use devices::{Buffer, DeviceCount, buffer, device_count, position, stated_devices};
pub use each::Test;
pub use fault::Fault;
pub use ik_options::IK_OPTIONS;
pub use option_spec::{Arity, OptionSpec, Setting};
pub use options::OPTIONS;
pub use parsed_option::ParsedOption;
pub use programs::{Maker, Program};
pub use rope::{ROPE_SETTINGS, RopeOptions, is_of_context, metadata_override};
pub use translate::{TpcCommand, ffn_on_host, quote};
