//! The views of all launches of a device, in device memory.
//!
//! Between two tokens, few views change: in decoding, the views of attention, whose cache has one more cell. Kernels with
//! such views come first, so one short copy brings them up to date.

use std::ops::Range;

use tpc_ir::program::Program;
use tpc_ir::{Dim, Symbol};
use tpc_runtime::ExecError;

use super::device_view::DeviceView;
use super::launches::Launches;
use super::memory::error;
use crate::driver::{Device, Driver, Endpoint, Memory};

/// Two changed ranges with at most this number of bytes between them take one copy. Starting a copy costs more time than
/// copying these bytes.
const MAX_GAP: usize = 4096;

/// The sizes that change between two tokens of a sequence.
const GROWING: [Symbol; 2] = [Symbol::NKv, Symbol::NKvSwa];

/// The frame of a device, with a copy of its bytes on the host.
#[derive(Debug)]
pub(super) struct DeviceFrame {
    memory: Memory,
    /// The device's slots in the launches.
    slots: Range<usize>,
    /// The position of each slot in the memory.
    positions: Vec<usize>,
    /// The slots as given last, before they move to other memory.
    given: Vec<Option<DeviceView>>,
    bytes: Vec<u8>,
    /// Positions whose bytes are not yet in device memory.
    changed: Vec<usize>,
}

impl DeviceFrame {
    pub(super) fn new(
        program: &Program,
        launches: &Launches,
        device: usize,
        driver: &mut impl Driver,
    ) -> Result<DeviceFrame, ExecError> {
        let slots = launches.of_device[device].clone();
        let bytes = slots.len().max(1) * DeviceView::BYTES;
        let memory = driver.allocate(Device(device as u32), bytes as u64);
        Ok(DeviceFrame {
            memory: memory.map_err(error)?,
            positions: positions(program, launches, device),
            given: vec![None; slots.len()],
            bytes: vec![0; bytes],
            changed: (0..slots.len()).collect(),
            slots,
        })
    }

    /// Returns the address of a slot. The slots of a kernel follow each other.
    pub(super) fn address(&self, slot: usize) -> u64 {
        let position = self.positions[slot - self.slots.start];
        self.memory.address + (position * DeviceView::BYTES) as u64
    }

    /// Returns the device's slots.
    pub(super) fn slots(&self) -> Range<usize> {
        self.slots.clone()
    }

    /// Records a slot's view; returns true if the view differs from the last call.
    pub(super) fn is_new(&mut self, slot: usize, view: DeviceView) -> bool {
        self.given[slot - self.slots.start].replace(view) != Some(view)
    }

    /// Encodes the view that kernels read in a slot.
    pub(super) fn set(&mut self, slot: usize, view: &DeviceView) -> Result<(), ExecError> {
        let position = self.positions[slot - self.slots.start];
        let encoded = view.encoded()?;
        let old = &mut self.bytes[position * DeviceView::BYTES..][..DeviceView::BYTES];
        if *old != encoded {
            old.copy_from_slice(&encoded);
            self.changed.push(position);
        }
        Ok(())
    }

    /// Forgets the views of the last call, after an error.
    pub(super) fn forget(&mut self) {
        self.given.fill(None);
    }

    /// Copies the changed bytes to the device.
    pub(super) fn write(&mut self, driver: &mut impl Driver) -> Result<(), ExecError> {
        self.changed.sort_unstable();
        for range in ranges(&self.changed) {
            let to = Endpoint {
                side: self.memory.side,
                address: self.memory.address + range.start as u64,
            };
            driver.write(to, &self.bytes[range]).map_err(error)?;
        }
        self.changed.clear();
        Ok(())
    }
}

/// Returns the ranges of bytes to copy for sorted positions.
fn ranges(changed: &[usize]) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for position in changed {
        let start = position * DeviceView::BYTES;
        let end = start + DeviceView::BYTES;
        match out.last_mut() {
            Some(last) if start <= last.end + MAX_GAP => last.end = end,
            _ => out.push(start..end),
        }
    }
    out
}

/// Returns the position of each slot of a device: kernels with a view that grows with the sequence come first.
fn positions(program: &Program, launches: &Launches, device: usize) -> Vec<usize> {
    let grows = |dim: &Dim| GROWING.into_iter().any(|symbol| dim.mentions(symbol));
    let slot_grows = |slot: usize| {
        let value = launches.slots[slot];
        let home = program.home(value).map(|home| &home.layout);
        let layout = home
            .into_iter()
            .flat_map(|l| l.strides.iter().chain([&l.offset]));
        let sizes = program.graph.value(value).ty.dims.iter().chain(layout);
        sizes.chain(launches.sizes.get(&slot)).any(grows)
    };
    let slots = &launches.of_device[device];
    let runs = launches.all_runs().filter(|(d, _)| *d == device);
    let mut runs: Vec<(bool, Range<usize>)> = runs
        .map(|(_, run)| (!run.slots.clone().any(slot_grows), run.slots.clone()))
        .collect();
    runs.sort_by_key(|(fixed, slots)| (*fixed, slots.start));
    let mut out = vec![0; slots.len()];
    for (position, slot) in runs.into_iter().flat_map(|(_, slots)| slots).enumerate() {
        out[slot - slots.start] = position;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_changes_share_a_copy() {
        const VIEW: usize = DeviceView::BYTES;
        let far = MAX_GAP / VIEW + 3;
        assert_eq!(ranges(&[]), []);
        let one = ranges(&[0, 1, 5]);
        assert_eq!((one.len(), one.first()), (1, Some(&(0..6 * VIEW))));
        let two = [2 * VIEW..3 * VIEW, (2 + far) * VIEW..(3 + far) * VIEW];
        assert_eq!(ranges(&[2, 2 + far]), two);
    }
}
