//! Dumps of launches: files with one launch and its operands, for bug reports and replay.
//!
//! | part      | content                                                        |
//! |-----------|----------------------------------------------------------------|
//! | line 1    | `tpc-launch-dump 1`, three lengths, SHA-256 of the rest        |
//! | header    | a [`DumpHeader`] in RON: launch, kernel, tensors, memory       |
//! | source    | the kernel's CUDA C++, without the prelude                     |
//! | data      | the saved bytes of each region, one region after another       |
//!
//! Files are not trusted. The reader checks every length and field before use, and never panics.

mod check;
mod error;
mod format;
mod header;
mod launch_dump;
mod parse;

pub use error::DumpError;
pub(crate) use format::hex;
pub use format::{MAX_FILE_BYTES, MAX_SAVED, MAX_SAVED_EACH};
pub use header::{
    DeviceRecord, DumpHeader, DumpMemory, KernelRecord, LaunchRecord, RegionRecord, Role,
    TensorRecord,
};
pub use launch_dump::LaunchDump;
pub use parse::parse;
