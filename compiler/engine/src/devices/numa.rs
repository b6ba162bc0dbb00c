//! The NUMA nodes of this machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use tpc_core::placement::{DeviceKind, NumaNode, absent_node};
use tpc_cpu::CoreSets;
use tpc_diag::Diagnostic;

use super::{cores, host_memory};

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;
/// The number of the only node of a machine without nodes.
const ONLY: u32 = 0;

/// Returns the nodes with cores and memory for this process, by number. A machine without NUMA is one node.
pub fn here() -> Vec<NumaNode> {
    let list = |key| cores::status(key).and_then(|list| cores::cpus(&list));
    let allowed = Allowed {
        cpus: list("Cpus_allowed_list:"),
        nodes: list("Mems_allowed_list:"),
    };
    let mut out = nodes(Path::new(cores::SYSTEM), &allowed);
    if out.is_empty() {
        let all = allowed.cpus.unwrap_or_default();
        out.push(NumaNode {
            number: ONLY,
            cores: one_per_core(Path::new(cores::SYSTEM), all),
            ..NumaNode::default()
        });
    }
    if let [one] = out.as_mut_slice() {
        // The system counts memory that is added while it runs; the node may not.
        one.memory = host_memory::total().max(one.memory);
    }
    out
}

/// The CPUs and memories that the process may use; `None` if unknown.
#[derive(Clone, Debug, Default)]
struct Allowed {
    cpus: Option<Vec<usize>>,
    nodes: Option<Vec<usize>>,
}

/// Reads the nodes below the folder `system`. Leaves out nodes without CPUs or memory for the process, and those whose
/// list of CPUs is malformed. A malformed size or distance is unknown.
fn nodes(system: &Path, allowed: &Allowed) -> Vec<NumaNode> {
    let folder = system.join("node");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let number = |name: String| name.strip_prefix("node")?.parse::<u32>().ok();
    let numbers = entries.filter_map(|e| number(e.file_name().into_string().ok()?));
    let numbers: BTreeSet<u32> = numbers.collect();
    let node = |&n: &u32| {
        let text = |file: &str| read(&folder.join(format!("node{n}")).join(file));
        let mut cpus = cores::cpus(&text("cpulist")?)?;
        if let Some(allowed) = &allowed.cpus {
            cpus.retain(|cpu| allowed.contains(cpu));
        }
        let memory = text("meminfo").and_then(|t| bytes(&t));
        let is_open = |all: &Vec<usize>| all.contains(&(n as usize));
        if cpus.is_empty() || memory == Some(0) || !allowed.nodes.as_ref().is_none_or(is_open) {
            return None;
        }
        Some(NumaNode {
            number: n,
            memory,
            cores: one_per_core(system, cpus),
            distances: text("distance")
                .and_then(|t| distances(&t, &numbers))
                .unwrap_or_default(),
        })
    };
    numbers.iter().filter_map(node).collect()
}

/// Keeps the first logical CPU of each physical core.
fn one_per_core(system: &Path, cpus: Vec<usize>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    let is_first = |&cpu: &usize| {
        let siblings = cores::siblings(system, cpu);
        siblings.is_none_or(|list| seen.insert(list))
    };
    cpus.into_iter().filter(is_first).collect()
}

/// Parses the total memory of a node's `meminfo`, in bytes.
fn bytes(text: &str) -> Option<u64> {
    let (_, rest) = text.split_once("MemTotal:")?;
    let mut words = rest.split_whitespace();
    let kib: u64 = words.next()?.parse().ok()?;
    (words.next() == Some("kB")).then(|| kib.checked_mul(1024))?
}

/// Parses a node's distances to all nodes, in the order of their numbers.
fn distances(text: &str, nodes: &BTreeSet<u32>) -> Option<BTreeMap<u32, u32>> {
    let all: Option<Vec<u32>> = text.split_whitespace().map(|n| n.parse().ok()).collect();
    let all = all.filter(|all| all.len() == nodes.len())?;
    Some(nodes.iter().copied().zip(all).collect())
}

fn read(path: &Path) -> Option<String> {
    let mut out = String::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_string(&mut out).ok()?;
    Some(out)
}

/// Returns the cores of the devices that are NUMA nodes. `nodes` are the machine's nodes; this machine's if `None`.
///
/// # Errors
/// Returns TPC0400 for a node that the machine does not have.
pub fn core_sets(
    devices: &[DeviceKind],
    nodes: Option<&[NumaNode]>,
) -> Result<CoreSets, Diagnostic> {
    if !devices.iter().any(|d| matches!(d, DeviceKind::Numa(_))) {
        return Ok(CoreSets::default());
    }
    let here = nodes.map_or_else(here, <[NumaNode]>::to_vec);
    let cores = |device: &DeviceKind| {
        let DeviceKind::Numa(number) = device else {
            return Ok(Vec::new());
        };
        let node = here.iter().find(|node| node.number == *number);
        node.map(|node| node.cores.clone())
            .ok_or_else(|| absent_node(*number, &here))
    };
    let cores: Result<Vec<Vec<usize>>, Diagnostic> = devices.iter().map(cores).collect();
    Ok(CoreSets::new(cores?))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    /// A made-up folder of the system.
    struct System(PathBuf);

    impl System {
        fn new() -> System {
            static COUNT: AtomicU32 = AtomicU32::new(0);
            let n = COUNT.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("tpc-numa-{}-{n}", std::process::id()));
            fs::create_dir_all(path.join("node")).expect("a folder");
            System(path)
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        fn node(&self, n: u32, cpus: &str, kib: u64, distances: &str) {
            let folder = format!("node/node{n}");
            self.file(&format!("{folder}/cpulist"), &format!("{cpus}\n"));
            let meminfo =
                format!("Node {n} MemTotal:    {kib} kB\nNode {n} MemFree:         1 kB\n");
            self.file(&format!("{folder}/meminfo"), &meminfo);
            self.file(&format!("{folder}/distance"), &format!("{distances}\n"));
        }

        fn cores(&self, pairs: &[[usize; 2]]) {
            for [a, b] in pairs {
                for cpu in [a, b] {
                    let path = format!("cpu/cpu{cpu}/topology/thread_siblings_list");
                    self.file(&path, &format!("{a},{b}\n"));
                }
            }
        }

        fn nodes(&self, cpus: &str) -> Vec<NumaNode> {
            let allowed = Allowed {
                cpus: cores::cpus(cpus),
                nodes: None,
            };
            nodes(&self.0, &allowed)
        }
    }

    impl Drop for System {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn cores_of(nodes: &[NumaNode]) -> Vec<(u32, Vec<usize>)> {
        nodes.iter().map(|n| (n.number, n.cores.clone())).collect()
    }

    #[test]
    fn two_sockets_with_two_threads_per_core() {
        let system = System::new();
        system.node(0, "0-1,4-5", 1000, "10 21");
        system.node(1, "2-3,6-7", 2000, "21 10");
        system.cores(&[[0, 4], [1, 5], [2, 6], [3, 7]]);
        let found = system.nodes("0-7");
        assert_eq!(cores_of(&found), [(0, vec![0, 1]), (1, vec![2, 3])]);
        assert_eq!(found[0].memory, Some(1000 << 10));
        assert_eq!(found[1].distances, BTreeMap::from([(0, 21), (1, 10)]));
        // A container has the second threads of two cores of a socket, and one of the other.
        let found = system.nodes("4-6");
        assert_eq!(cores_of(&found), [(0, vec![4, 5]), (1, vec![6])]);
        let found = system.nodes("0,4");
        assert_eq!(cores_of(&found), [(0, vec![0])]);
        let allowed = Allowed {
            cpus: None,
            nodes: Some(vec![1]),
        };
        assert_eq!(cores_of(&nodes(&system.0, &allowed)), [(1, vec![2, 3])]);
    }

    #[test]
    fn four_nodes_with_a_hole_and_memory_without_cores() {
        let system = System::new();
        system.node(0, "0-1", 1000, "10 12 32 17");
        system.node(1, "2-3", 1000, "12 10 32 17");
        system.node(3, "4-5", 1000, "32 32 10 28");
        // Memory without cores, and cores without memory.
        system.node(8, "", 1 << 30, "17 17 28 10");
        let found = system.nodes("0-63");
        let expected = [(0, vec![0, 1]), (1, vec![2, 3]), (3, vec![4, 5])];
        assert_eq!(cores_of(&found), expected);
        assert_eq!(found[2].distances[&0], 32);
        assert_eq!(found[0].distances[&8], 17);
        system.node(1, "2-3", 0, "12 10 32 17");
        assert_eq!(system.nodes("0-63").len(), 2);
    }

    #[test]
    fn malformed_files_make_no_nodes_or_unknown_figures() {
        let system = System::new();
        assert!(system.nodes("0-3").is_empty());
        system.node(0, "0-1", 1000, "10 banana");
        system.node(1, "2-99999999999999", 1000, "10 20");
        system.node(2, "cpus", 1000, "10 20");
        system.file("node/node3/cpulist", "2");
        system.file(
            "node/node3/meminfo",
            "Node 3 MemTotal: 18446744073709551615 kB",
        );
        system.file("node/node4/meminfo", "Node 4 MemTotal: 5 kB");
        system.file("node/nodeX/cpulist", "0");
        system.file("node/node99999999999/cpulist", "0");
        system.file("node/online", "0-4");
        let found = system.nodes("0-3");
        assert_eq!(cores_of(&found), [(0, vec![0, 1]), (3, vec![2])]);
        assert!(found[0].distances.is_empty() && found[1].distances.is_empty());
        assert_eq!((found[0].memory, found[1].memory), (Some(1000 << 10), None));
        for (text, expected) in [
            ("", None),
            ("MemTotal:", None),
            ("MemTotal: 5", None),
            ("MemTotal: 5 MB", None),
            ("Node 0 MemTotal: 5 kB", Some(5 << 10)),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }

    #[test]
    fn this_machine_has_a_node_with_cores() {
        let found = here();
        assert!(!found.is_empty());
        if cfg!(target_os = "linux") {
            assert!(found.iter().all(|n| !n.cores.is_empty()), "{found:?}");
        }
    }

    #[test]
    fn devices_have_the_cores_of_their_nodes() {
        let node = |number, cores: &[usize]| NumaNode {
            number,
            cores: cores.to_vec(),
            ..NumaNode::default()
        };
        let nodes = [node(0, &[0]), node(3, &[1, 2])];
        let of = |devices: &[DeviceKind]| core_sets(devices, Some(&nodes));
        let found = of(&[DeviceKind::Numa(3), DeviceKind::Numa(0)]);
        assert_eq!(found, Ok(CoreSets::new(vec![vec![1, 2], vec![0]])));
        assert_eq!(of(&[DeviceKind::Cpu; 2]), Ok(CoreSets::default()));
        let d = of(&[DeviceKind::Numa(1)]).expect_err("no such node");
        assert_eq!(d.code.id, "TPC0400");
    }
}
