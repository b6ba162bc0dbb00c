//! Memory sizes from `/proc/meminfo`.

use std::io::Read;

const MAX_BYTES: u64 = 1 << 20;

/// Returns the total memory in bytes, if known.
pub fn total() -> Option<u64> {
    bytes("MemTotal:")
}

/// Returns the available memory in bytes, if known.
pub fn available() -> Option<u64> {
    bytes("MemAvailable:")
}

fn bytes(key: &str) -> Option<u64> {
    let mut text = String::new();
    let file = std::fs::File::open("/proc/meminfo").ok()?;
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|l| l.strip_prefix(key))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
