//! Memories of emulated devices and of the host.

use memmap2::{MmapMut, MmapOptions};
use tpc_cuda::{Device, DriverError, Endpoint, Memory, Side};

use super::checks::Cell;

/// A range that was allocated.
pub(super) struct Allocation {
    pub(super) side: Side,
    pub(super) start: usize,
    pub(super) bytes: usize,
    /// Keeps the memory.
    _map: MmapMut,
    /// What the checks know, a cell per byte.
    cells: Option<MmapMut>,
    /// The bytes that kernels have read, as often as they read them.
    read: u64,
}

/// All that is allocated, by addresses.
#[derive(Default)]
pub(super) struct Memories {
    all: Vec<Allocation>,
    /// What was found last.
    last: std::cell::Cell<usize>,
}

impl Memories {
    /// The bytes that are allocated on a side.
    pub(super) fn used(&self, side: Side) -> u64 {
        let on = self.all.iter().filter(|a| a.side == side);
        on.map(|a| a.bytes as u64).sum()
    }

    /// New memory: a device's is poisoned, the host's is zero.
    pub(super) fn allocate(&mut self, side: Side, bytes: u64) -> Result<Memory, DriverError> {
        let out_of_memory = || DriverError::OutOfMemory {
            place: side.to_string(),
            needed: bytes,
            free: 0,
        };
        let len = usize::try_from(bytes).map_err(|_| out_of_memory())?;
        let map = MmapOptions::new()
            .len(len.max(1))
            .no_reserve_swap()
            .map_anon();
        let mut map = map.map_err(|_| out_of_memory())?;
        if let Side::Device(_) = side {
            map.fill(0xff);
        }
        let start = map.as_mut_ptr() as usize;
        let at = self.all.partition_point(|a| a.start < start);
        let bytes = len;
        self.all.insert(
            at,
            Allocation {
                side,
                start,
                bytes,
                _map: map,
                cells: None,
                read: 0,
            },
        );
        Ok(Memory {
            side,
            address: start as u64,
            bytes: len as u64,
        })
    }

    /// Gives memory back.
    pub(super) fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        let is = |a: &Allocation| a.start as u64 == memory.address && a.side == memory.side;
        match self.all.iter().position(is) {
            Some(i) => {
                self.all.remove(i);
                Ok(())
            }
            None => Err(outside(memory.side, memory.address, memory.bytes)),
        }
    }

    /// What holds an address, or the last allocation before it.
    pub(super) fn find(&self, address: usize) -> Option<&Allocation> {
        self.all.get(self.position(address)?)
    }

    fn position(&self, address: usize) -> Option<usize> {
        let holds = |a: &Allocation| (a.start..a.start + a.bytes).contains(&address);
        if self.all.get(self.last.get()).is_some_and(holds) {
            return Some(self.last.get());
        }
        let after = self.all.partition_point(|a| a.start <= address);
        let found = after.checked_sub(1)?;
        self.last.set(found);
        Some(found)
    }

    /// The side of the allocation that has all of these bytes.
    pub(super) fn holds(&self, address: usize, bytes: usize) -> Option<Side> {
        let a = &self.all[self.position(address)?];
        (address - a.start + bytes <= a.bytes).then_some(a.side)
    }

    /// Counts bytes that a kernel reads.
    pub(super) fn count(&mut self, address: usize, bytes: usize) {
        if let Some(at) = self.position(address) {
            self.all[at].read += bytes as u64;
        }
    }

    /// The bytes of an allocation that kernels have read.
    pub(super) fn read(&self, memory: Memory) -> u64 {
        let is = |a: &&Allocation| a.start as u64 == memory.address;
        self.all.iter().find(is).map_or(0, |a| a.read)
    }

    /// The allocation of bytes, with what the checks know of them.
    pub(super) fn cells(&mut self, address: usize, bytes: usize) -> Option<(Side, &mut [Cell])> {
        let at = self.position(address)?;
        let a = &mut self.all[at];
        let from = address - a.start;
        if from + bytes > a.bytes {
            return None;
        }
        if a.cells.is_none() {
            let len = a.bytes.max(1) * size_of::<Cell>();
            let map = MmapOptions::new().len(len).no_reserve_swap().map_anon();
            a.cells = Some(map.expect("invariant: addresses do not run out"));
        }
        let map = a.cells.as_mut().expect("invariant: it was made above");
        let cells = map.as_mut_ptr().cast::<Cell>();
        // SAFETY: pages are aligned, zero is a cell, and there is one for each byte.
        let cells = unsafe { std::slice::from_raw_parts_mut(cells.add(from), bytes) };
        Some((a.side, cells))
    }

    /// Forgets what the checks know.
    pub(super) fn forget(&mut self) {
        for a in &mut self.all {
            a.cells = None;
        }
    }

    /// The pointer to a range that is within one allocation of its side.
    pub(super) fn range(&self, at: Endpoint, bytes: u64) -> Result<*mut u8, DriverError> {
        let found = usize::try_from(at.address).ok().and_then(|a| self.find(a));
        let fits = found.is_some_and(|a| {
            let end = at.address.checked_add(bytes);
            a.side == at.side && end.is_some_and(|end| end <= (a.start + a.bytes) as u64)
        });
        match fits {
            true => Ok(at.address as *mut u8),
            false => Err(outside(at.side, at.address, bytes)),
        }
    }

    /// The bytes that a device has left of so many.
    pub(super) fn left(&self, device: Device, of: u64) -> u64 {
        of.saturating_sub(self.used(Side::Device(device)))
    }
}

fn outside(side: Side, address: u64, bytes: u64) -> DriverError {
    DriverError::Address {
        side: side.to_string(),
        address,
        bytes,
    }
}
