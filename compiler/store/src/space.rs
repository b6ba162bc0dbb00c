use std::path::Path;

/// Returns the bytes that this user may write at a folder, if the system tells.
#[cfg(unix)]
pub(super) fn free(folder: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(folder).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

/// Returns the bytes that this user may write at a folder, if the system tells.
#[cfg(not(unix))]
pub(super) fn free(_: &Path) -> Option<u64> {
    None
}
