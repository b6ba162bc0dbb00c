//! Checks that an artefact fits a machine's memory, cards and topology.

use std::path::Path;

use tpc_artefact::{Artefact, Digest, codes};
use tpc_core::format::bytes;
use tpc_diag::Diagnostic;
use tpc_ir::{Device, Place};

use super::fit::{CPU, CUDA, Mismatch, TargetDevices};
use crate::devices::host_memory;

/// Returns a mismatch for each device, and for the host, with too little memory. Skips devices of unknown size. CPU
/// programs keep all places in host memory.
pub fn in_memory(artefact: &Artefact, target: Option<&TargetDevices>) -> Vec<Mismatch> {
    let arenas = &artefact.program().arenas;
    let taken = |at: &dyn Fn(Place) -> bool| -> u64 {
        let of = arenas.iter().filter(|a| at(a.place));
        of.fold(0, |sum, a| sum.saturating_add(a.bytes))
    };
    let devices = target.map_or(&[][..], |a| &a.memory).iter().enumerate();
    let mut out: Vec<Mismatch> = devices
        .filter_map(|(i, memory)| {
            let name = artefact.manifest().devices.get(i)?;
            let needed = taken(&|place| place == Place::Device(Device::new(i)));
            memory_mismatch(&format!("{name} (device {i})"), needed, (*memory)?)
        })
        .collect();
    let on_processor = artefact.manifest().target.executor == CPU;
    let needed = taken(&|place| on_processor || place == Place::Host);
    out.extend(host_memory::total().and_then(|all| memory_mismatch("this machine", needed, all)));
    out
}

/// Returns a note if the artefact at `path` is for cards and the machine lacks a driver or card.
pub fn without_cards(path: &Path, artefact: &Artefact) -> Option<Diagnostic> {
    if artefact.manifest().target.executor != CUDA {
        return None;
    }
    let why = tpc_cuda::cards().err()?;
    let message = format!("the artefact is for cards, and tpc could not check them: {why}");
    let name = path.display().to_string();
    let d = Diagnostic::new(&codes::NO_CARDS, name, message);
    Some(d.help("check it again on the machine that will run it"))
}

fn memory_mismatch(place: &str, needed: u64, memory: u64) -> Option<Mismatch> {
    (needed > memory).then(|| Mismatch {
        field: "memory",
        found: bytes(needed),
        wanted: format!("at most {} on {place}", bytes(memory)),
        code: &codes::MEMORY,
    })
}

/// Returns a mismatch if the artefact was compiled for another topology file.
pub fn of_topology(artefact: &Artefact, file: &[u8]) -> Option<Mismatch> {
    let (found, here) = (artefact.manifest().topology, Digest::of(file));
    (found != Some(here)).then(|| Mismatch {
        field: "topology",
        found: found.map_or_else(|| "none".to_owned(), |d| d.to_string()),
        wanted: here.to_string(),
        code: &codes::TOPOLOGY,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artefact_may_use_all_memory() {
        assert!(memory_mismatch("a", 5, 5).is_none());
        let m = memory_mismatch("a", 6 << 30, 5 << 30).expect("it is more");
        assert_eq!(
            (m.found.as_str(), m.wanted.as_str()),
            ("6.00 GiB", "at most 5.00 GiB on a")
        );
    }
}
