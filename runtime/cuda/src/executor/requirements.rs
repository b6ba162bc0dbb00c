use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_runtime::ExecError;

use super::frames::scratch_bytes;
use super::launches::Launches;
use super::memory::error;
use super::messages::is_here;
use super::place::device;
use crate::driver::{Device, Driver, DriverError};
use crate::nvrtc::target_for;

pub(super) fn check_devices(program: &Program, driver: &impl Driver) -> Result<(), ExecError> {
    let infos = driver.devices();
    let devices = program.graph.devices.len();
    if infos.len() < devices {
        let what = format!("the program needs {devices} devices: {} found", infos.len());
        return Err(ExecError::Parameter { what });
    }
    for info in &infos[..devices] {
        if target_for(info.capability).is_none() {
            return Err(error(DriverError::Capability {
                device: Device(info.card),
                name: info.name.clone(),
                capability: info.capability,
            }));
        }
    }
    Ok(())
}

/// Checks that each card has enough free memory for arenas, activations in other forms and scratch memory. Devices on a card share its
/// memory.
pub(super) fn check_memory(
    program: &Program,
    launches: &Launches,
    driver: &impl Driver,
) -> Result<(), ExecError> {
    let infos = driver.devices();
    let mut of_card: BTreeMap<u32, (Device, u64)> = BTreeMap::new();
    let mut taken: Vec<(Device, u64)> = Vec::new();
    let here = |place| is_here(launches.share.as_ref(), place);
    for arena in program.arenas.iter().filter(|a| here(a.place)) {
        let device = device(arena.place)?;
        taken.extend(device.map(|device| (device, arena.bytes)));
    }
    let terms = launches.terms_bytes.iter().enumerate();
    taken.extend(terms.map(|(d, bytes)| (Device(d as u32), 2 * *bytes)));
    let exchange = launches.exchange_bytes.iter().enumerate();
    taken.extend(exchange.map(|(d, bytes)| (Device(d as u32), 2 * *bytes)));
    let halves = launches.halves_bytes.iter().enumerate();
    taken.extend(halves.map(|(d, bytes)| (Device(d as u32), *bytes)));
    let scratch = launches.scratch_bytes.iter().enumerate();
    taken.extend(scratch.map(|(d, scratch)| (Device(d as u32), scratch_bytes(*scratch))));
    for (device, more) in taken {
        let card = infos[device.0 as usize].card;
        let (_, bytes) = of_card.entry(card).or_insert((device, 0));
        *bytes = bytes.saturating_add(more);
    }
    for (card, (device, needed)) in of_card {
        let free = driver.free_memory(device).map_err(error)?;
        if needed > free {
            let place = format!("{} ({})", Device(card), infos[device.0 as usize].name);
            return Err(error(DriverError::OutOfMemory {
                place,
                needed,
                free,
            }));
        }
    }
    Ok(())
}
