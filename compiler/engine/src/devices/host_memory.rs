//! The memory of this machine, where the system tells.

use std::io::Read;

/// The most bytes of `/proc/meminfo` that are read.
const MAX_BYTES: u64 = 1 << 20;

/// Returns all of it, in bytes.
pub fn total() -> Option<u64> {
    bytes("MemTotal:")
}

/// Returns what is free now, in bytes.
pub fn available() -> Option<u64> {
    bytes("MemAvailable:")
}

/// Reads a line of `/proc/meminfo`.
fn bytes(key: &str) -> Option<u64> {
    let mut text = String::new();
    let file = std::fs::File::open("/proc/meminfo").ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|l| l.strip_prefix(key))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
