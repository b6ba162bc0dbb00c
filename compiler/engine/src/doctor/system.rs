//! The operating system, its C library, processors, memory and limits.

use std::thread;

use tpc_core::format::bytes;
use tpc_cuda::Driver;

use super::check::Bench;
use super::glibc;
use super::report::{CheckError, Finding};
use crate::devices::host_memory;

type Result = std::result::Result<Finding, CheckError>;

pub(super) fn platform<D: Driver>(_: &mut Bench<D>, _: &[usize]) -> Result {
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    Ok(Finding::ok(format!("{os} on {arch}")))
}

/// The version of glibc that published programs need.
const GLIBC: (u32, u32) = (2, 34);

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn glibc_finding(version: &str) -> Finding {
    let text = format!("glibc {version}");
    match major_minor(version) {
        Some(found) if found < GLIBC => {
            let cure = "build tpc on this machine, or update the system: published programs need glibc 2.34";
            Finding::warning(text, cure)
        }
        _ => Finding::ok(text),
    }
}

pub(super) fn c_library<D: Driver>(_: &mut Bench<D>, _: &[usize]) -> Result {
    Ok(match glibc::version() {
        Some(version) => glibc_finding(&version),
        None => Finding::skipped("tpc is not linked to glibc"),
    })
}

pub(super) fn cpu<D: Driver>(_: &mut Bench<D>, _: &[usize]) -> Result {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    Ok(Finding::ok(format!("{threads} threads")).with("threads", threads as f64))
}

/// The minimum of free memory without a warning.
const LITTLE: u64 = 1 << 30;

pub(super) fn memory<D: Driver>(_: &mut Bench<D>, _: &[usize]) -> Result {
    let (Some(total), Some(free)) = (host_memory::total(), host_memory::available()) else {
        return Ok(Finding::skipped("the system does not report its memory"));
    };
    let text = format!("{}, {} free", bytes(total), bytes(free));
    let finding = match free < LITTLE {
        true => Finding::warning(text, "end other programs: loading a model needs memory"),
        false => Finding::ok(text),
    };
    Ok(finding
        .with("total_bytes", total as f64)
        .with("free_bytes", free as f64))
}

/// Returns the soft limit in the text of `/proc/self/limits`, in bytes; `u64::MAX` if unlimited.
fn limit_of(text: &str) -> Option<u64> {
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("Max locked memory"))?;
    match line.split_whitespace().next()? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

pub(super) fn lock_limit<D: Driver>(_: &mut Bench<D>, _: &[usize]) -> Result {
    let text = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    Ok(match limit_of(&text) {
        None => Finding::skipped("the system does not report its limit of locked memory"),
        Some(u64::MAX) => Finding::ok("a process may lock all memory"),
        Some(limit) => {
            let text = format!("a process may lock {}", bytes(limit));
            Finding::ok(text).with("limit_bytes", limit as f64)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn old_c_libraries_are_a_warning() {
        let status = |v: &str| glibc_finding(v).status;
        assert_eq!(status("2.33"), Status::Warning);
        assert_eq!(status("2.34"), Status::Ok);
        assert_eq!(status("3.1"), Status::Ok);
        assert_eq!(status("strange"), Status::Ok);
    }

    #[test]
    fn limits_are_read() {
        let line = |l: &str| format!("Limit Soft Hard Units\nMax locked memory  {l}  9 bytes\n");
        assert_eq!(limit_of(&line("65536")), Some(65536));
        assert_eq!(limit_of(&line("unlimited")), Some(u64::MAX));
        assert_eq!(limit_of(&line("x")), None);
        assert_eq!(limit_of(""), None);
    }
}
