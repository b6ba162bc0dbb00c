use memmap2::{MmapMut, MmapOptions};
use tpc_cuda::{Device, DriverError, Endpoint, Memory, Side};

use super::race::ShadowCell;

pub(super) struct Allocation {
    pub(super) side: Side,
    pub(super) start: usize,
    pub(super) bytes: usize,
    _map: MmapMut,
    cells: Option<MmapMut>,
    /// The bytes that kernels have read, counting repeated reads.
    read: u64,
}

#[derive(Default)]
pub(super) struct Memories {
    all: Vec<Allocation>,
    last: std::cell::Cell<usize>,
}

impl Memories {
    pub(super) fn used(&self, side: Side) -> u64 {
        let on = self.all.iter().filter(|a| a.side == side);
        on.map(|a| a.bytes as u64).sum()
    }

    /// Allocates memory, filled with poison bytes on devices and with zeros on the host.
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

    pub(super) fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        let is = |a: &Allocation| a.start as u64 == memory.address && a.side == memory.side;
        match self.all.iter().position(is) {
            Some(i) => {
                self.all.remove(i);
                Ok(())
            }
            None => Err(address_error(memory.side, memory.address, memory.bytes)),
        }
    }

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

    pub(super) fn holds(&self, address: usize, bytes: usize) -> Option<Side> {
        let a = &self.all[self.position(address)?];
        (address - a.start + bytes <= a.bytes).then_some(a.side)
    }

    pub(super) fn count_read(&mut self, address: usize, bytes: usize) {
        if let Some(at) = self.position(address) {
            self.all[at].read += bytes as u64;
        }
    }

    pub(super) fn bytes_read(&self, memory: Memory) -> u64 {
        let is = |a: &&Allocation| a.start as u64 == memory.address;
        self.all.iter().find(is).map_or(0, |a| a.read)
    }

    pub(super) fn cells(
        &mut self,
        address: usize,
        bytes: usize,
    ) -> Option<(Side, &mut [ShadowCell])> {
        let at = self.position(address)?;
        let a = &mut self.all[at];
        let from = address - a.start;
        if from + bytes > a.bytes {
            return None;
        }
        if a.cells.is_none() {
            let len = a.bytes.max(1) * size_of::<ShadowCell>();
            let map = MmapOptions::new().len(len).no_reserve_swap().map_anon();
            a.cells = Some(map.expect("invariant: addresses do not run out"));
        }
        let map = a
            .cells
            .as_mut()
            .expect("invariant: the map was created above");
        let cells = map.as_mut_ptr().cast::<ShadowCell>();
        // SAFETY: pages are aligned, zero bytes form a valid cell, and each byte has a cell.
        let cells = unsafe { std::slice::from_raw_parts_mut(cells.add(from), bytes) };
        Some((a.side, cells))
    }

    pub(super) fn clear_shadow(&mut self) {
        for a in &mut self.all {
            a.cells = None;
        }
    }

    pub(super) fn range(&self, at: Endpoint, bytes: u64) -> Result<*mut u8, DriverError> {
        let found = usize::try_from(at.address).ok().and_then(|a| self.find(a));
        let fits = found.is_some_and(|a| {
            let end = at.address.checked_add(bytes);
            a.side == at.side && end.is_some_and(|end| end <= (a.start + a.bytes) as u64)
        });
        match fits {
            true => Ok(at.address as *mut u8),
            false => Err(address_error(at.side, at.address, bytes)),
        }
    }

    pub(super) fn free_bytes(&self, device: Device, of: u64) -> u64 {
        of.saturating_sub(self.used(Side::Device(device)))
    }
}

fn address_error(side: Side, address: u64, bytes: u64) -> DriverError {
    DriverError::Address {
        side: side.to_string(),
        address,
        bytes,
    }
}
