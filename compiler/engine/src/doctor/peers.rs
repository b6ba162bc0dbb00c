//! Access and copies between two devices.

use tpc_cuda::{Driver, DriverError, PeerFailure, Side};

use super::check::Bench;
use super::copies::{SIZES, unchanged};
use super::memory::device;
use super::report::{CheckError, Finding};

type Result = std::result::Result<Finding, CheckError>;

const CURE: &str =
    "turn off the IOMMU and PCIe ACS in the firmware; `nvidia-smi topo -p2p r` shows the links";

/// Grants two devices access to each other's memory. Returns false without a link.
pub(super) fn join<D: Driver>(
    driver: &mut D,
    devices: &[usize],
) -> std::result::Result<bool, DriverError> {
    for (reader, owner) in [(0, 1), (1, 0)] {
        match driver.grant(device(devices[reader]), device(devices[owner])) {
            Ok(()) => {}
            Err(DriverError::NoPeerAccess { .. }) => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

pub(super) fn access<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let (reader, owner) = (device(subject[1]), device(subject[0]));
    match bench.driver()?.grant(reader, owner) {
        Ok(()) => Ok(Finding::ok("the devices access each other's memory")),
        Err(DriverError::NoPeerAccess { why, .. }) => Ok(match why {
            PeerFailure::NoLink => Finding::warning(
                format!("{why}: data go through the host's memory, which is slower"),
                "no action is needed; cards without a peer link work",
            ),
            PeerFailure::WrongData => Finding::failed(why.to_string(), CURE),
        }),
        Err(e) => Err(e.into()),
    }
}

pub(super) fn exchange<D: Driver>(bench: &mut Bench<D>, subject: &[usize]) -> Result {
    let path = [subject[0], subject[1]].map(|d| Side::Device(device(d)));
    let driver = bench.driver()?;
    // Without access, the driver copies through the host's memory.
    match driver.grant(device(subject[1]), device(subject[0])) {
        Ok(()) | Err(DriverError::NoPeerAccess { .. }) => {}
        Err(e) => return Err(e.into()),
    }
    unchanged(driver, &path, &SIZES, CURE)
}
