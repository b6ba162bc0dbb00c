//! Whether an artefact fits a machine: the memory of its places, and the topology for which it was planned.

use std::path::Path;

use tpc_artefact::{Artefact, Digest, codes};
use tpc_core::format::bytes;
use tpc_diag::Diagnostic;
use tpc_ir::{Device, Place};

use super::{CPU, CUDA, Mismatch, TargetDevices};
use crate::devices::host_memory;

/// Where an artefact needs more memory than there is: the devices that are target for, as far as their memory is known, and the
/// host's, which for programs of the processor is that of all places.
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
            short(&format!("{name} (device {i})"), needed, (*memory)?)
        })
        .collect();
    let on_processor = artefact.manifest().target.executor == CPU;
    let needed = taken(&|place| on_processor || place == Place::Host);
    out.extend(host_memory::total().and_then(|all| short("this machine", needed, all)));
    out
}

/// Returns the note on the artefact at `path` if it is for cards and this machine has none.
pub fn without_cards(path: &Path, artefact: &Artefact) -> Option<Diagnostic> {
    if artefact.manifest().target.executor != CUDA {
        return None;
    }
    let why = tpc_cuda::cards().err()?;
    let message = format!("it is for cards, and none was looked at: {why}");
    let name = path.display().to_string();
    let d = Diagnostic::new(&codes::NO_CARDS, name, message);
    Some(d.help("check it again where it will run"))
}

/// What does not fit a place.
fn short(place: &str, needed: u64, memory: u64) -> Option<Mismatch> {
    (needed > memory).then(|| Mismatch {
        field: "memory",
        found: bytes(needed),
        wanted: format!("at most {} on {place}", bytes(memory)),
        code: &codes::MEMORY,
    })
}

/// Whether a topology file is another than that for which an artefact was planned.
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
    fn what_is_needed_may_be_all_that_there_is() {
        assert!(short("a", 5, 5).is_none());
        let m = short("a", 6 << 30, 5 << 30).expect("it is more");
        assert_eq!(
            (m.found.as_str(), m.wanted.as_str()),
            ("6.00 GiB", "at most 5.00 GiB on a")
        );
    }
}
