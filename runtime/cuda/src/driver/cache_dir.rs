use std::path::PathBuf;

use super::DriverError;

/// Returns the folder `name` for compiled code, within `TPC_CUDA_CACHE` or the user's cache folder. Other users must
/// not have write access, because tpc runs this code.
///
/// # Errors
///
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
        what: "cannot find a folder for compiled kernels".into(),
        cause: std::io::Error::new(
            std::io::ErrorKind::NotFound,
            "TPC_CUDA_CACHE, XDG_CACHE_HOME and HOME are unset; set TPC_CUDA_CACHE to a folder",
        ),
    })?;
    Ok(base.join(name))
}
