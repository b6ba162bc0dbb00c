//! Command lines of llama.cpp: the options that affect the placement of tensors and caches.
//!
//! `command` parses a line, `each` expands a benchmark's lists, and `translate` converts a line to tpc's options.

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
mod sources;
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
pub use sources::{SourceFile, Sources};
pub use translate::{TpcCommand, ffn_on_host, quote};
