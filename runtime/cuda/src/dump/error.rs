use tpc_ir::Code;

use crate::codes;

/// An error of a dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(
    missing_docs,
    reason = "the message of each variant describes its fields"
)]
pub enum DumpError {
    #[error("the file is not a dump: line 1 must begin with `tpc-launch-dump`")]
    NotADump,
    #[error("the dump has format {found}: this tpc reads format {known}")]
    Version { found: String, known: u32 },
    #[error("line 1 of the dump is damaged: expected three lengths and a SHA-256")]
    FirstLine,
    #[error("{what} of the dump has {found} bytes, at most {most} are allowed")]
    TooLong {
        what: &'static str,
        found: u64,
        most: u64,
    },
    #[error("the dump ends at byte {found}: line 1 states {expected} bytes")]
    Length { found: u64, expected: u64 },
    #[error("the dump is damaged after byte {after}: the SHA-256 differs from line 1")]
    Checksum { after: u64 },
    #[error("{what} of the dump is not UTF-8 at byte {at}")]
    Text { what: &'static str, at: u64 },
    #[error("the header of the dump cannot be read at line {at}")]
    Header { at: String },
    #[error("field `{field}` of the dump is {found}: expected {expected}")]
    Field {
        field: String,
        found: String,
        expected: String,
    },
    #[error("kernel {kernel} of the dump, by {producer}, differs from the kernel of this tpc")]
    ForeignKernel { kernel: String, producer: String },
}

impl DumpError {
    /// Returns the code, which [`crate::CODES`] declares.
    pub fn code(&self) -> &'static Code {
        match self {
            DumpError::ForeignKernel { .. } => &codes::DUMP_KERNEL,
            _ => &codes::LAUNCH_DUMP,
        }
    }
}
