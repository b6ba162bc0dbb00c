use std::collections::BTreeMap;

use tpc_ir::program::Program;
use tpc_ir::{Bindings, Buffer};
use tpc_runtime::ExecError;

use super::device_frame::DeviceFrame;
use super::device_view::DeviceView;
use super::launches::{Launches, ScratchPart};
use super::memory::{Arenas, error};
use super::task::StagingPart;
use crate::driver::{Device, Driver, Endpoint, Memory};
use crate::kernels::Scratch;

/// The frame of each device: views, quantised activations, scratch memory, staging buffers.
#[derive(Debug)]
pub(super) struct Frames {
    devices: Vec<DeviceFrame>,
    /// The batch shape of the last views.
    shape: Option<usize>,
    others: OtherMemory,
}

/// Memory of launches outside the arenas.
#[derive(Debug)]
struct OtherMemory {
    terms: Vec<Memory>,
    /// Activations as f16.
    halves: Vec<Memory>,
    /// Counters, then partial results.
    scratch: Vec<Memory>,
    staging: Vec<Memory>,
    /// Values that devices exchange.
    exchange: Vec<Memory>,
    /// The start of each buffer whose values leave its arena, by batch shape.
    left: BTreeMap<Buffer, Vec<u64>>,
    /// The largest logits of each part of the output.
    best: Vec<Memory>,
}

impl Frames {
    pub(super) fn new(
        program: &Program,
        launches: &Launches,
        arenas: &Arenas,
        driver: &mut impl Driver,
    ) -> Result<Frames, ExecError> {
        let devices = (0..launches.of_device.len())
            .map(|d| DeviceFrame::new(program, launches, d, driver))
            .collect::<Result<Vec<DeviceFrame>, ExecError>>()?;
        Ok(Frames {
            devices,
            shape: None,
            others: OtherMemory::new((program, launches), arenas, driver)?,
        })
    }

    pub(super) fn memories(&self) -> impl Iterator<Item = &Memory> {
        let others = &self.others;
        let more = others.scratch.iter().chain(&others.staging);
        let more = more.chain(&others.exchange);
        others.terms.iter().chain(&others.halves).chain(more)
    }

    /// Returns the start of the memory of the largest logits of a part.
    pub(super) fn best(&self, part: usize) -> Option<Endpoint> {
        let memory = self.others.best.get(part)?;
        Some(Endpoint {
            side: memory.side,
            address: memory.address,
        })
    }

    /// Returns the address of a part of a staging buffer, in host memory.
    pub(super) fn staging(&self, launches: &Launches, part: StagingPart) -> u64 {
        self.others.staging(launches, part)
    }

    pub(super) fn slot(&self, device: usize, slot: usize) -> u64 {
        self.devices[device].address(slot)
    }

    /// Brings the frames of all devices up to date. Copies only bytes that differ from the last call.
    pub(super) fn write(
        &mut self,
        launches: &Launches,
        slots: &[DeviceView],
        (shape, sizes): (usize, &Bindings),
        driver: &mut impl Driver,
    ) -> Result<(), ExecError> {
        if self.shape.replace(shape) != Some(shape) {
            self.devices.iter_mut().for_each(DeviceFrame::forget);
        }
        for (d, frame) in self.devices.iter_mut().enumerate() {
            let set = self.others.set(launches, (d, frame), slots, (shape, sizes));
            if set.is_err() {
                frame.forget();
            }
            set?;
            frame.write(driver)?;
        }
        Ok(())
    }
}

impl OtherMemory {
    fn new(
        (program, launches): (&Program, &Launches),
        arenas: &Arenas,
        driver: &mut impl Driver,
    ) -> Result<OtherMemory, ExecError> {
        let mut of_devices = |bytes: &[u64], least: u64| {
            let each = bytes.iter().enumerate().map(|(d, bytes)| {
                let memory = driver.allocate(Device(d as u32), (*bytes).max(least));
                memory.map_err(error)
            });
            each.collect::<Result<Vec<Memory>, ExecError>>()
        };
        let two: Vec<u64> = launches
            .terms_bytes
            .iter()
            .map(|bytes| 2 * *bytes)
            .collect();
        let terms = of_devices(&two, 2)?;
        let two: Vec<u64> = launches.exchange_bytes.iter().map(|n| 2 * *n).collect();
        let exchange = of_devices(&two, 2)?;
        let halves = of_devices(&launches.halves_bytes, 1)?;
        let scratch = launches
            .scratch_bytes
            .iter()
            .enumerate()
            .map(|(d, bytes)| scratch(Device(d as u32), *bytes, driver));
        let scratch = scratch.collect::<Result<Vec<Memory>, ExecError>>()?;
        let staging = launches.staging.iter().map(|staging| {
            let bytes = (staging.parts * staging.bytes).max(1) as u64;
            driver.allocate_host(bytes).map_err(error)
        });
        let staging = staging.collect::<Result<Vec<Memory>, ExecError>>()?;
        let parts = launches.best_output.iter().flat_map(|of| of.parts.iter());
        let best = parts
            .map(|part| driver.allocate_host(part.bytes() as u64).map_err(error))
            .collect::<Result<Vec<Memory>, ExecError>>()?;
        let starts = |from: Buffer| -> Vec<u64> {
            let buffer = program.buffer(from);
            let arena = arenas.address(buffer.arena);
            let shapes = 0..program.shapes.len();
            shapes.map(|s| arena + buffer.extent(s).offset).collect()
        };
        let moved = launches.exchanged.values().map(|slot| slot.from);
        Ok(OtherMemory {
            left: moved.map(|from| (from, starts(from))).collect(),
            exchange,
            best,
            terms,
            halves,
            scratch,
            staging,
        })
    }

    fn staging(&self, launches: &Launches, StagingPart { buffer, part }: StagingPart) -> u64 {
        let bytes = part * launches.staging[buffer].bytes;
        self.staging[buffer].address + bytes as u64
    }

    /// Sets the slots of a device's frame.
    fn set(
        &self,
        launches: &Launches,
        (device, frame): (usize, &mut DeviceFrame),
        slots: &[DeviceView],
        (shape, sizes): (usize, &Bindings),
    ) -> Result<(), ExecError> {
        let of_device = frame.slots();
        for slot in of_device.clone() {
            if frame.is_new(slot, slots[slot]) && !launches.sizes.contains_key(&slot) {
                frame.set(
                    slot,
                    &self.view(launches, (device, slot), slots[slot], shape),
                )?;
            }
        }
        for (slot, size) in launches.sizes.range(of_device) {
            let size = size.eval(sizes).ok_or_else(|| ExecError::Size {
                what: size.to_string(),
            })?;
            frame.set(*slot, &slots[*slot].of_size(size))?;
        }
        Ok(())
    }

    /// Returns the view that kernels read in a slot of a device.
    fn view(
        &self,
        launches: &Launches,
        (device, slot): (usize, usize),
        given: DeviceView,
        shape: usize,
    ) -> DeviceView {
        let mut view = given;
        if let Some(to) = launches.exchanged.get(&slot) {
            let start = self.left.get(&to.from).map_or(0, |starts| starts[shape]);
            let buffer = to.number as u64 * launches.exchange_bytes[to.device];
            view.address = self.exchange[to.device].address + buffer + (view.address - start);
        }
        if let Some(part) = launches.staged.get(&slot) {
            view = view.dense(self.staging(launches, *part));
        }
        if let Some(term_slot) = launches.terms.get(&slot) {
            let terms = &self.terms[device];
            view = view.terms(terms.address + term_slot.number() * (terms.bytes / 2));
        }
        if launches.halves.contains(&slot) {
            view = view.halves(self.halves[device].address);
        }
        if let Some(part) = launches.scratch.get(&slot) {
            let behind = match part {
                ScratchPart::Counters => 0,
                ScratchPart::Parts => counters(launches.scratch_bytes[device]),
            };
            view = view.empty_at(self.scratch[device].address + behind);
        }
        if let Some(part) = launches.best_slots.get(&slot) {
            view = view.empty_at(self.best[*part].address);
        }
        view
    }
}

fn counters(scratch: Scratch) -> u64 {
    scratch.counters.next_multiple_of(256)
}

pub(super) fn scratch_bytes(scratch: Scratch) -> u64 {
    counters(scratch).saturating_add(scratch.parts)
}

fn scratch(device: Device, of: Scratch, driver: &mut impl Driver) -> Result<Memory, ExecError> {
    let memory = driver.allocate(device, scratch_bytes(of).max(1));
    let memory = memory.map_err(error)?;
    let to = Endpoint {
        side: memory.side,
        address: memory.address,
    };
    let zeros = vec![0; counters(of) as usize];
    driver.write(to, &zeros).map_err(error)?;
    Ok(memory)
}
