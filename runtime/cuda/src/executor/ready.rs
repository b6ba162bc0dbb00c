//! Whether the devices can run a program, before anything of it is loaded.

use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_runtime::ExecError;

use super::memory::{device, error};
use crate::driver::{Device, Driver, DriverError};
use crate::nvrtc::target_for;

/// Fails where devices are missing, cannot run the kernels, or have less free memory than the arenas on them take. Devices that
/// are one card share its memory.
pub(super) fn ready(program: &Program, driver: &impl Driver) -> Result<(), ExecError> {
    let infos = driver.devices();
    let devices = program.graph.devices.len();
    if infos.len() < devices {
        let what = format!(
            "the program is for {devices} devices: {} are here",
            infos.len()
        );
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
    let mut of_card: BTreeMap<u32, (Device, u64)> = BTreeMap::new();
    for arena in &program.arenas {
        let Some(device) = device(arena.place)? else {
            continue;
        };
        let card = infos[device.0 as usize].card;
        let (_, bytes) = of_card.entry(card).or_insert((device, 0));
        *bytes = bytes.saturating_add(arena.bytes);
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
