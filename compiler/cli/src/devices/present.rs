//! This machine's devices, as reported by the driver and the system. Reports are untrusted: tpc shortens and cleans
//! texts, limits numbers, and kills a hanging `nvidia-smi`.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Serialize;
use tpc_core::cards::{Card, CardMatch, find, short_name, table};
use tpc_core::format::printable;
use tpc_core::placement::NumaNode;
use tpc_cuda::DeviceInfo;

use tpc_engine::devices::{host_memory, numa};

const TIMEOUT: Duration = Duration::from_secs(3);
/// The maximum output of `nvidia-smi`, in bytes.
const OUTPUT: u64 = 64 << 10;
const GPUS: usize = 64;
const MIB: u64 = 1 << 20;

/// A machine's devices.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "Machine")]
pub(super) struct Present {
    /// The GPUs.
    pub(super) gpus: Vec<Gpu>,
    /// The value of `--devices` for these GPUs, if tpc knows every card.
    pub(super) devices: Option<String>,
    /// The CPU and the host's memory.
    pub(super) cpu: Cpu,
    /// The NUMA nodes that this process may use; absent if there is only one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) nodes: Vec<Node>,
    /// Reasons for missing facts, and differences from tpc's card table.
    pub(super) notes: Vec<String>,
}

/// A GPU.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(super) struct Gpu {
    /// The driver's name of the card.
    pub(super) name: String,
    /// The card's name in tpc's table.
    pub(super) card: Option<&'static str>,
    /// The total memory, in bytes.
    pub(super) memory_bytes: Option<u64>,
    /// The free memory, in bytes.
    pub(super) free_bytes: Option<u64>,
    /// The PCI bus address, or the driver's device number.
    pub(super) bus: String,
    /// The PCI Express generation.
    pub(super) pcie_gen: Option<u32>,
    /// The number of PCI Express lanes.
    pub(super) pcie_lanes: Option<u32>,
}

/// The CPU and the host's memory.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(super) struct Cpu {
    /// The name.
    pub(super) name: Option<String>,
    /// The number of hardware threads.
    pub(super) threads: Option<usize>,
    /// The total memory, in bytes.
    pub(super) memory_bytes: Option<u64>,
    /// The available memory, in bytes.
    pub(super) available_bytes: Option<u64>,
}

/// A NUMA node.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "NumaNode")]
pub(super) struct Node {
    /// The name in `--devices`.
    pub(super) name: String,
    /// The number of physical cores that this process may use.
    pub(super) cores: usize,
    /// The total memory, in bytes.
    pub(super) memory_bytes: Option<u64>,
}

/// Describes the NUMA nodes. The list is empty if there is only one.
fn nodes(all: &[NumaNode]) -> Vec<Node> {
    let several = all.iter().filter(|_| all.len() > 1);
    let node = |n: &NumaNode| Node {
        name: format!("numa:{}", n.number),
        cores: n.cores.len(),
        memory_bytes: n.memory,
    };
    several.map(node).collect()
}

pub(super) fn present() -> Present {
    let mut out = Present {
        cpu: cpu(),
        nodes: nodes(&numa::here()),
        ..Present::default()
    };
    match ask() {
        Ok(text) => out.gpus = gpus(&text),
        // A container may have the driver's library, but no `nvidia-smi`.
        Err(why) => match tpc_cuda::cards() {
            Ok(cards) => out.gpus = cards.iter().take(GPUS).map(of_driver).collect(),
            Err(_) => out.notes.push(why),
        },
    }
    let known: Option<Vec<&str>> = out.gpus.iter().map(|g| g.card).collect();
    let known = known.filter(|k| !k.is_empty());
    out.devices = known.map(|cards| {
        let runs = cards.chunk_by(|a, b| a == b).map(|run| match run {
            [one] => short_name(one),
            several => format!("{}x{}", several.len(), short_name(several[0])),
        });
        runs.collect::<Vec<_>>().join(",")
    });
    out.notes.extend(out.gpus.iter().filter_map(differs));
    out.notes.dedup();
    out
}

fn of_driver(card: &DeviceInfo) -> Gpu {
    let name = printable(&card.name.chars().take(80).collect::<String>());
    Gpu {
        card: card_named(&name).map(|c| c.name.as_str()),
        name,
        memory_bytes: Some(card.memory),
        free_bytes: None,
        bus: format!("cuda:{}", card.card),
        pcie_gen: None,
        pcie_lanes: None,
    }
}

/// Returns the difference between a GPU and its card in the table, if any.
fn differs(gpu: &Gpu) -> Option<String> {
    let card = card_named(&gpu.name)?;
    let memory = gpu.memory_bytes?;
    let ratio = memory as f64 / card.memory;
    if !(0.93..=1.08).contains(&ratio) {
        let mib = memory / MIB;
        return Some(format!(
            "{} has {mib} MiB here and {:.0} MiB in the table: plan with a topology file (devices: [(card: \"{}\", memory: \
             \"{mib} MiB\")])",
            gpu.name,
            card.memory / MIB as f64,
            card.name
        ));
    }
    let lanes = gpu.pcie_lanes.filter(|&n| n < card.pcie.lanes)?;
    Some(format!(
        "{} has {lanes} of {} lanes here: write (card: \"{}\", pcie_lanes: {lanes}) in a topology file",
        gpu.name, card.pcie.lanes, card.name
    ))
}

fn card_named(name: &str) -> Option<&'static Card> {
    match find(name, &[], table()) {
        CardMatch::Card(card) | CardMatch::Meant { card, .. } => Some(card),
        CardMatch::Several(_) | CardMatch::Unknown(_) => None,
    }
}

fn ask() -> Result<String, String> {
    let query = "--query-gpu=name,memory.total,memory.free,pci.bus_id,pcie.link.gen.max,pcie.link.width.max";
    let child = Command::new("nvidia-smi")
        .args([query, "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = child.map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            "nvidia-smi is missing, so GPUs cannot be listed".to_owned()
        }
        _ => format!("nvidia-smi cannot be started: {e}"),
    })?;
    let started = Instant::now();
    let said = read(&mut child);
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break Some(status),
            Ok(None) if said.is_some() && started.elapsed() < TIMEOUT => {
                thread::sleep(Duration::from_millis(10));
            }
            _ => break None,
        }
    };
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    match (said, status) {
        (Some(bytes), Some(status)) if status.success() => {
            Ok(String::from_utf8_lossy(&bytes).into_owned())
        }
        (_, Some(status)) => Err(format!(
            "nvidia-smi failed ({status}): is the driver loaded?"
        )),
        (_, None) => Err("nvidia-smi did not answer within 3 seconds and was stopped".to_owned()),
    }
}

/// Reads a child's output; returns `None` after the timeout.
fn read(child: &mut Child) -> Option<Vec<u8>> {
    let stdout = child.stdout.take()?;
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let read = stdout.take(OUTPUT).read_to_end(&mut bytes);
        let _ = send.send(read.map(|_| bytes));
    });
    receive.recv_timeout(TIMEOUT).ok()?.ok()
}

/// Parses one GPU per line, with comma-separated fields. Skips lines with other fields.
fn gpus(text: &str) -> Vec<Gpu> {
    let number =
        |field: &str, most: u64| field.parse::<u64>().ok().filter(|n| (1..=most).contains(n));
    let gpu = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [name, memory, free, bus, generation, lanes] = fields.as_slice() else {
            return None;
        };
        if name.is_empty() {
            return None;
        }
        let short = |text: &str| printable(&text.chars().take(80).collect::<String>());
        let name = short(name);
        let memory = number(memory, 100 << 20);
        Some(Gpu {
            card: card_named(&name).map(|c| c.name.as_str()),
            name,
            memory_bytes: memory.map(|m| m * MIB),
            free_bytes: number(free, memory.unwrap_or(100 << 20)).map(|m| m * MIB),
            bus: short(bus),
            pcie_gen: number(generation, 16).map(|n| n as u32),
            pcie_lanes: number(lanes, 32).map(|n| n as u32),
        })
    };
    text.lines().filter_map(gpu).take(GPUS).collect()
}

fn cpu() -> Cpu {
    let read = |path: &str| {
        let mut text = String::new();
        let file = std::fs::File::open(path).ok()?;
        file.take(1 << 20).read_to_string(&mut text).ok()?;
        Some(text)
    };
    let value = |text: &str, key: &str| {
        let line = text.lines().find(|l| l.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let name = read("/proc/cpuinfo").and_then(|t| value(&t, "model name"));
    Cpu {
        name: name.map(|n| printable(&n.chars().take(80).collect::<String>())),
        threads: thread::available_parallelism().ok().map(usize::from),
        memory_bytes: host_memory::total(),
        available_bytes: host_memory::available(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_driver() {
        let found = gpus(
            "NVIDIA GeForce RTX 3090, 24576, 24100, 00000000:01:00.0, 4, 16\n\
             NVIDIA H100 80GB HBM3, 81559, 81000, 00000000:02:00.0, 5, 16\n\
             Weird \u{1b}[31mCard, [N/A], 9999999999999999999, x, -1, 99\n\
             too, few\n\
             , 1, 1, 1, 1, 1\n",
        );
        assert_eq!(found.len(), 3);
        assert_eq!(
            (found[0].card, found[0].memory_bytes),
            (Some("RTX 3090"), Some(24576 << 20))
        );
        assert_eq!(found[1].card, Some("H100 SXM"));
        let strange = &found[2];
        assert!(!strange.name.contains('\u{1b}'));
        assert_eq!(
            (
                strange.card,
                strange.memory_bytes,
                strange.free_bytes,
                strange.pcie_gen,
                strange.pcie_lanes
            ),
            (None, None, None, None, None)
        );
        assert_eq!(gpus(&"a, 1, 1, b, 1, 1\n".repeat(1000)).len(), GPUS);
    }

    #[test]
    fn several_nodes_are_listed() {
        let node = |number| NumaNode {
            number,
            memory: Some(1 << 30),
            cores: vec![0, 1],
            ..NumaNode::default()
        };
        assert!(nodes(&[node(0)]).is_empty());
        let found = nodes(&[node(0), node(3)]);
        let names: Vec<&str> = found.iter().map(|n| n.name.as_str()).collect();
        assert_eq!((names, found[1].cores), (vec!["numa:0", "numa:3"], 2));
    }

    #[test]
    fn a_card_that_differs_from_the_table_is_told_how_to_plan_with() {
        let found = gpus(
            "NVIDIA GeForce RTX 2080 Ti, 22528, 22000, b, 3, 16\nNVIDIA GeForce RTX 3090, 24576, 1, b, 4, 4\n",
        );
        let told: Vec<String> = found.iter().filter_map(differs).collect();
        assert!(
            told[0].contains("(card: \"RTX 2080 Ti\", memory: \"22528 MiB\")"),
            "{told:?}"
        );
        assert!(told[1].contains("pcie_lanes: 4"), "{told:?}");
    }
}
