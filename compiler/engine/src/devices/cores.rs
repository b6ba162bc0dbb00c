//! Counts CPU cores.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

/// Returns the number of physical cores for this process, within the container's CPU limit. Counts logical cores if the
/// system does not report which logical cores share a physical core.
pub fn usable() -> usize {
    let logical = thread::available_parallelism().map_or(1, usize::from);
    physical_cores()
        .map_or(logical, |cores| cores.min(logical))
        .max(1)
}

fn physical_cores() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let allowed = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    let siblings = |cpu: usize| {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
        fs::read_to_string(path).ok()
    };
    let cores: Option<BTreeSet<String>> = cpus(allowed)?.into_iter().map(siblings).collect();
    cores.map(|c| c.len())
}

/// Parses a list of CPU numbers such as `0-3,8`.
fn cpus(list: &str) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        out.extend(first.parse::<usize>().ok()?..=last.parse().ok()?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_parsed() {
        assert_eq!(cpus(" 0-2,8\n"), Some(vec![0, 1, 2, 8]));
        assert_eq!(cpus("x"), None);
        assert!(usable() >= 1);
    }
}
