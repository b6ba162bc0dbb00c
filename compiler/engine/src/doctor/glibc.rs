//! The version of the C library.
#![cfg_attr(
    all(target_os = "linux", target_env = "gnu"),
    expect(unsafe_code, reason = "it calls the C library")
)]

/// Returns the version of glibc as `major.minor`; `None` for other C libraries.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn version() -> Option<String> {
    use std::ffi::{CStr, c_char};

    unsafe extern "C" {
        fn gnu_get_libc_version() -> *const c_char;
    }
    // SAFETY: the function has no preconditions, and returns null or a constant string.
    let text = unsafe {
        let text = gnu_get_libc_version();
        (!text.is_null()).then(|| CStr::from_ptr(text))
    };
    text.map(|t| t.to_string_lossy().into_owned())
}

/// Returns the version of glibc as `major.minor`; `None` for other C libraries.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(super) fn version() -> Option<String> {
    None
}
