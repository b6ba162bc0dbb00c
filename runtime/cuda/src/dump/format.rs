//! The limits and the spelling of the parts of a dump.

use std::fmt::Write as _;

pub(super) const MAGIC: &str = "tpc-launch-dump";
pub(super) const VERSION: u32 = 1;
/// The bytes of the first line, at most.
pub(super) const MAX_LINE: usize = 200;
/// The bytes of a header, at most.
pub(super) const MAX_HEADER: u64 = 4 << 20;
/// The bytes of a kernel's source, at most.
pub(super) const MAX_SOURCE: u64 = 16 << 20;
/// The saved bytes of a region, at most.
pub const MAX_SAVED_EACH: u64 = 256 << 20;
/// The saved bytes of a dump, at most.
pub const MAX_SAVED: u64 = 1 << 30;
/// The bytes of a dump file, at most.
pub const MAX_FILE_BYTES: u64 = MAX_SAVED + MAX_HEADER + MAX_SOURCE + MAX_LINE as u64;

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}

/// Returns the bytes of hexadecimal digits.
pub(super) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|c| c.to_digit(16).map(|d| d as u8));
    let digits: Vec<u8> = digits.collect::<Option<_>>()?;
    let (pairs, rest) = digits.as_chunks::<2>();
    let bytes = pairs.iter().map(|[a, b]| a * 16 + b);
    rest.is_empty().then(|| bytes.collect())
}
