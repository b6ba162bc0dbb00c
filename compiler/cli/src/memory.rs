//! The memory of this machine, where the system tells, and what this program holds of it.

use std::io::Read;

/// The most of what the system says that is read, in bytes.
const MOST: u64 = 1 << 20;

/// All of it, in bytes.
pub(super) fn all() -> Option<u64> {
    bytes("MemTotal:")
}

/// What is free now, in bytes.
pub(super) fn available() -> Option<u64> {
    bytes("MemAvailable:")
}

/// Gives the system what the allocator holds of memory that was freed: a plan takes more while it is made than while it runs.
#[allow(unsafe_code)]
pub(super) fn give_back() {
    // SAFETY: it takes no pointers, and may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}

/// A line of `/proc/meminfo`.
fn bytes(key: &str) -> Option<u64> {
    let mut text = String::new();
    let file = std::fs::File::open("/proc/meminfo").ok()?;
    file.take(MOST).read_to_string(&mut text).ok()?;
    let value = text.lines().find_map(|l| l.strip_prefix(key))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
