//! Command lines of llama.cpp: the options that decide where tensors and caches are.
//!
//! - `option_spec` is an option: its spellings, its arguments and the setting that it changes;
//! - `options` lists the options of the programs; `groups` has those that tpc reads itself;
//! - `parsed_option` is an option of a line;
//! - `command` parses a line, with the environment variables before it;
//! - `beside` has the files that it loads in addition to the model;
//! - `devices` counts the devices that it names;
//! - `programs` tells the programs apart, with the options that some have alone, and `ik_options` has those of
//!   `ik_llama.cpp`;
//! - `fault` finds values that a program does not take, by the `numbers` among others;
//! - `each` takes the lists of a benchmark apart;
//! - `context` has the cells that a program makes, and what llama.cpp chooses by itself;
//! - `rope` has the scaling of the rotation that a line asks for;
//! - `limit_codes` declares the codes of what llama.cpp's tensor split does not serve;
//! - `translate` says the same in tpc's options;
//! - `memory_words` has the options of a line that change the memory of llama.cpp alone.

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
