//! Memories of emulated devices and of the host.

use memmap2::{MmapMut, MmapOptions};

use crate::driver::{Device, DriverError, Endpoint, Memory, Side};

/// A range that was allocated.
pub(super) struct Allocation {
    pub(super) side: Side,
    pub(super) start: usize,
    pub(super) bytes: usize,
    map: MmapMut,
}

/// All that is allocated, by addresses.
#[derive(Default)]
pub(super) struct Memories {
    all: Vec<Allocation>,
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
                map,
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
        let after = self.all.partition_point(|a| a.start <= address);
        self.all.get(after.checked_sub(1)?)
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

impl Allocation {
    /// Whether it holds the address.
    pub(super) fn holds(&self, address: usize) -> bool {
        debug_assert_eq!(self.map.as_ptr() as usize, self.start);
        (self.start..self.start + self.bytes).contains(&address)
    }
}
