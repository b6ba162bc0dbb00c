//! Where compiled kernels are kept.

use std::path::PathBuf;

use super::DriverError;

/// A folder of what was compiled before, within that of the variable `TPC_CUDA_CACHE`, or the user's cache. What lies there is
/// run, so that no folder will do that others may write to.
///
/// # Errors
/// Where the user has neither.
pub fn cache_dir(name: &str) -> Result<PathBuf, DriverError> {
    let set = |name: &str| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let home = || Some(set("HOME")?.join(".cache"));
    let user = || set("XDG_CACHE_HOME").or_else(home).map(|c| c.join("tpc"));
    let base = set("TPC_CUDA_CACHE").or_else(user);
    let base = base.ok_or_else(|| DriverError::Io {
        what: "the folder of compiled kernels".into(),
        cause: std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "none of TPC_CUDA_CACHE, XDG_CACHE_HOME and HOME is set; let TPC_CUDA_CACHE name a folder of yours",
        ),
    })?;
    Ok(base.join(name))
}
