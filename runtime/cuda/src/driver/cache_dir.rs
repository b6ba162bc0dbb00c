//! The folder of compiled kernels.

use std::path::PathBuf;

use super::DriverError;

/// Returns the folder `name` for compiled code, within `TPC_CUDA_CACHE` or the user's cache folder. tpc runs the code in this folder, so
/// other users must not be able to write to it.
///
/// # Errors
/// Returns an error if `TPC_CUDA_CACHE`, `XDG_CACHE_HOME` and `HOME` are all unset.
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
