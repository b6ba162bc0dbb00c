//! Counts CPU cores.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::thread;

/// The system's folder of CPUs and NUMA nodes.
pub(super) const SYSTEM: &str = "/sys/devices/system";
/// Larger CPU numbers are errors. Linux supports 8192 CPUs.
const MAX_CPU: usize = 1 << 16;

/// Returns the number of physical cores for this process, within the container's CPU limit. Counts logical cores if the
/// system does not report which logical cores share a physical core.
pub fn usable() -> usize {
    let logical = thread::available_parallelism().map_or(1, usize::from);
    physical_cores()
        .map_or(logical, |cores| cores.min(logical))
        .max(1)
}

fn physical_cores() -> Option<usize> {
    let allowed = cpus(&status("Cpus_allowed_list:")?)?;
    let siblings = |cpu: usize| siblings(Path::new(SYSTEM), cpu);
    let cores: Option<BTreeSet<String>> = allowed.into_iter().map(siblings).collect();
    cores.map(|c| c.len())
}

/// Returns a value of this process' status, such as `Cpus_allowed_list:`.
pub(super) fn status(key: &str) -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let value = status.lines().find_map(|l| l.strip_prefix(key))?;
    Some(value.trim().to_owned())
}

/// Returns the list of logical CPUs that share a physical core with this one.
pub(super) fn siblings(system: &Path, cpu: usize) -> Option<String> {
    let path = format!("cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(system.join(path)).ok()
}

/// Parses a list of CPU numbers such as `0-3,8`. Returns `None` for other text.
pub(super) fn cpus(list: &str) -> Option<Vec<usize>> {
    let mut out = Vec::new();
    for part in list.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if last > MAX_CPU {
            return None;
        }
        out.extend(first..=last);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_are_parsed() {
        assert_eq!(cpus(" 0-2,8\n"), Some(vec![0, 1, 2, 8]));
        for wrong in ["", "x", "0-", "0-99999999999", "1,,2", "-1"] {
            assert_eq!(cpus(wrong), None, "{wrong}");
        }
        assert!(usable() >= 1);
    }
}
