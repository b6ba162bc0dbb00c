//! Binds the devices of a plan to graphics cards.

use std::collections::BTreeMap;

use tpc_core::cards::table;
use tpc_core::placement::{DeviceKind, DeviceList, DeviceSpec, Machine, MachineRequest, NumaNode};
use tpc_cuda::{CudaDriver, DeviceMap, DriverError, PeerFailure, cache_dir};
use tpc_cuda_emulator::{
    Build, EmulatedDriver, EmulatedOptions, FailingDriver, PlantedLaunchFault,
};
use tpc_diag::{Diagnostic, codes};

use super::numa;
use crate::error::Error;
use crate::observer::Observer;

/// Returns each device's card number. `cuda:N` has number N, so devices may share a card. Others get the lowest unused
/// numbers.
pub fn numbers(kinds: &[DeviceKind]) -> Vec<u32> {
    let named = |n: &u32| kinds.contains(&DeviceKind::Cuda(*n));
    let mut others = (0..).filter(|n| !named(n));
    let number = |kind: &DeviceKind| match kind {
        DeviceKind::Cuda(n) => *n,
        DeviceKind::Generic | DeviceKind::Cpu | DeviceKind::Numa(_) => {
            others.next().unwrap_or(u32::MAX)
        }
    };
    kinds.iter().map(number).collect()
}

/// Returns the kinds of listed devices. All are generic if the list does not parse to `count` devices, for example
/// names of a topology file.
pub fn kinds(list: &str, count: usize) -> Vec<DeviceKind> {
    let read = DeviceList::parse(list).and_then(|list| {
        let on = |nodes: &[NumaNode]| {
            let request = MachineRequest {
                list: Some(&list),
                nodes,
                ..MachineRequest::default()
            };
            request.machine()
        };
        // Only `numa` without numbers depends on this machine.
        on(&[]).or_else(|_| on(&numa::here()))
    });
    let read = read.ok().map(|machine| machine.devices);
    match read.filter(|devices| devices.len() == count) {
        Some(devices) => devices.iter().map(|d| d.kind).collect(),
        None => vec![DeviceKind::Generic; count],
    }
}

/// True if every device of the list is a CUDA card: a card number, or a model with a compute capability.
pub fn are_cards(list: &DeviceList) -> bool {
    let cuda = |d: &DeviceSpec| match &d.card {
        Some(name) => (table().cards.iter()).any(|c| c.name == *name && c.capability.is_some()),
        None => matches!(d.kind, DeviceKind::Cuda(_)),
    };
    matches!(list, DeviceList::Named(_) | DeviceList::Cluster(_))
        && Machine::of(list).is_ok_and(|m| m.devices.iter().all(cuda))
}

/// Checks that no device is the CPU.
///
/// # Errors
/// Returns TPC0401 if a device is the CPU.
pub fn no_processor(kinds: &[DeviceKind]) -> Result<(), Error> {
    match kinds.iter().find(|kind| kind.is_processor()) {
        None => Ok(()),
        Some(kind) => {
            let name = match kind {
                DeviceKind::Numa(_) => "numa",
                _ => "cpu",
            };
            let message =
                format!("the CUDA executor runs only on cards, and `{name}` is not a card");
            let d = Diagnostic::new(&codes::UNSUPPORTED_OPTION, "--devices", message);
            Err(Error::usage(d.help(
                "use --devices cuda:0, or a count for the first cards; -ngl, -ot and -cmoe keep weights on the host",
            )))
        }
    }
}

/// Opens the devices' cards.
///
/// # Errors
/// Returns an error if the driver or a card is missing.
pub fn real(kinds: &[DeviceKind]) -> Result<DeviceMap<CudaDriver>, DriverError> {
    let numbers = numbers(kinds);
    DeviceMap::new(CudaDriver::new(&numbers, cache_dir("cubins")?)?, &numbers)
}

/// Returns the number of distinct cards, and the position of each card among them.
pub(crate) fn places(numbers: &[u32]) -> (usize, Vec<u32>) {
    let mut cards = numbers.to_vec();
    cards.sort_unstable();
    cards.dedup();
    let at = |n: &u32| cards.iter().position(|c| c == n).unwrap_or(0) as u32;
    (cards.len(), numbers.iter().map(at).collect())
}

/// Makes an emulated device per distinct card, with a planted fault.
///
/// # Errors
/// Returns an error if the C++ compiler is missing.
pub fn emulated(
    kinds: &[DeviceKind],
    build: Build,
    planted: Option<PlantedLaunchFault>,
) -> Result<DeviceMap<FailingDriver<EmulatedDriver>>, DriverError> {
    let (devices, places) = places(&numbers(kinds));
    let driver = EmulatedDriver::new(EmulatedOptions {
        devices,
        build,
        ..EmulatedOptions::default()
    })?;
    DeviceMap::new(FailingDriver::new(driver, planted), &places)
}

/// Reports the pairs of cards that exchange data through the host's memory. Wrong data are a warning.
pub(crate) fn report_peers(pairs: &[((u32, u32), PeerFailure)], observer: &dyn Observer) {
    let mut by_pair: BTreeMap<(u32, u32), PeerFailure> = BTreeMap::new();
    for &((a, b), why) in pairs {
        let worst = by_pair.entry((a.min(b), a.max(b))).or_insert(why);
        *worst = why.max(*worst);
    }
    for ((a, b), why) in by_pair {
        let line = format!("cuda:{a} and cuda:{b} exchange data through the host's memory: {why}");
        match why {
            PeerFailure::NoLink => observer.detail(&line),
            PeerFailure::WrongData => {
                let code = &tpc_cuda::NO_PEER_ACCESS;
                observer.diagnostic(&Diagnostic::milder(code, "devices", line).help(code.cure));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DeviceKind::{Cuda, Generic, Numa};
    use std::sync::Mutex;

    #[derive(Default)]
    struct Seen(Mutex<Vec<String>>);

    impl Observer for Seen {
        fn diagnostic(&self, d: &Diagnostic) {
            let line = format!("{} {:?} {}", d.code.id, d.severity, d.message);
            self.0.lock().expect("no panic").push(line);
        }

        fn detail(&self, line: &str) {
            self.0.lock().expect("no panic").push(line.to_owned());
        }
    }

    #[test]
    fn links_that_return_wrong_data_are_a_warning() {
        let seen = Seen::default();
        let (no, wrong) = (PeerFailure::NoLink, PeerFailure::WrongData);
        let pairs = [((0, 1), no), ((1, 0), wrong), ((2, 0), no), ((0, 2), no)];
        report_peers(&pairs, &seen);
        let seen = seen.0.into_inner().expect("no panic");
        assert_eq!(seen.len(), 2, "{seen:?}");
        assert!(
            seen[0].starts_with("TPC0547 Warning cuda:0 and cuda:1"),
            "{seen:?}"
        );
        assert!(
            seen[1].starts_with("cuda:0 and cuda:2 exchange"),
            "{seen:?}"
        );
    }

    #[test]
    fn devices_without_a_number_take_the_first_unused_cards() {
        assert_eq!(numbers(&[Generic; 3]), [0, 1, 2]);
        assert_eq!(numbers(&[Cuda(0), Cuda(0)]), [0, 0]);
        assert_eq!(numbers(&[Cuda(3), Cuda(1)]), [3, 1]);
        assert_eq!(numbers(&[Generic, Cuda(0), Generic]), [1, 0, 2]);
    }

    #[test]
    fn cards_have_a_number_or_a_compute_capability() {
        for (list, cards) in [
            ("cuda:0,cuda:3", true),
            ("2x3090", true),
            ("H100-SXM,3090", true),
            ("RX 7900 XTX", false),
            ("3090,cpu", false),
            ("2", false),
            ("nothing-like-it", false),
        ] {
            let list = DeviceList::parse(list).expect("a list");
            assert_eq!(are_cards(&list), cards, "{list:?}");
        }
    }

    #[test]
    fn names_of_a_topology_file_are_devices_without_a_number() {
        assert_eq!(kinds("cuda:2,cuda:0", 2), [Cuda(2), Cuda(0)]);
        // An artefact may be for the nodes of another machine.
        assert_eq!(kinds("numa:0,numa:99", 2), [Numa(0), Numa(99)]);
        let here = numa::here();
        assert_eq!(kinds("numa", here.len())[0], Numa(here[0].number));
        assert_eq!(kinds("left,right", 2), [Generic; 2]);
        assert_eq!(kinds("2", 2), [Generic; 2]);
        assert_eq!(kinds("", 1), [Generic]);
    }
}
