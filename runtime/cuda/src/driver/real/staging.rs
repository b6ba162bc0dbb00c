//! Copies between host and device memory, in the order of a stream.
//!
//! A copy from pageable memory may return before its data arrive, and a non-blocking stream does not wait for it. All
//! copies therefore go through page-locked memory, as asynchronous copies in the stream of the graphs. `cuMemcpyAsync`
//! finds the device of an address, so one stream serves all devices.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::device::check;
use crate::driver::DriverError;

/// The size of the page-locked memory, in bytes. Longer transfers take several copies.
const BYTES: usize = 8 << 20;
/// The alignment of every copy's source, in bytes.
const ALIGNMENT: usize = 256;

/// Page-locked memory for transfers. The pages are allocated by the first transfer.
pub(super) struct Staging {
    stream: sys::CUstream,
    memory: *mut u8,
    /// Bytes that copies in flight may still read.
    filled: usize,
}

impl Staging {
    pub(super) fn new(stream: sys::CUstream) -> Staging {
        Staging {
            stream,
            memory: std::ptr::null_mut(),
            filled: 0,
        }
    }

    /// Waits for the stream; all of the memory is then free.
    pub(super) fn wait(&mut self) -> Result<(), DriverError> {
        // SAFETY: the stream is valid.
        let result = unsafe { sys::cuStreamSynchronize(self.stream) };
        self.filled = 0;
        check("running a graph", result)
    }

    fn memory(&mut self) -> Result<*mut u8, DriverError> {
        if self.memory.is_null() {
            let mut pointer: *mut c_void = std::ptr::null_mut();
            let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
            // SAFETY: the pointer is valid for writes.
            let result = unsafe { sys::cuMemHostAlloc(&raw mut pointer, BYTES, flags) };
            check("allocating page-locked memory", result)?;
            self.memory = pointer.cast();
        }
        Ok(self.memory)
    }

    /// Copies bytes to a device. Graphs launched later see them; graphs launched earlier do not.
    ///
    /// # Safety
    /// The device memory at `to` has `bytes.len()` bytes, and a context is current.
    pub(super) unsafe fn write(&mut self, to: u64, bytes: &[u8]) -> Result<(), DriverError> {
        let memory = self.memory()?;
        let mut to = to;
        for part in bytes.chunks(BYTES) {
            if self.filled + part.len() > BYTES {
                self.wait()?;
            }
            // SAFETY: the part fits behind the bytes in flight, and the caller guarantees the device memory.
            let result = unsafe {
                let from = memory.add(self.filled);
                from.copy_from_nonoverlapping(part.as_ptr(), part.len());
                sys::cuMemcpyAsync(to, from as u64, part.len(), self.stream)
            };
            check("copying to a device", result)?;
            self.filled = (self.filled + part.len())
                .next_multiple_of(ALIGNMENT)
                .min(BYTES);
            to += part.len() as u64;
        }
        Ok(())
    }

    /// Copies bytes from a device, after all graphs launched before.
    ///
    /// # Safety
    /// The device memory at `from` has `bytes.len()` bytes, and a context is current.
    pub(super) unsafe fn read(&mut self, from: u64, bytes: &mut [u8]) -> Result<(), DriverError> {
        let memory = self.memory()?;
        self.wait()?;
        let mut from = from;
        for part in bytes.chunks_mut(BYTES) {
            // SAFETY: the part fits, and the caller guarantees the device memory.
            let result =
                unsafe { sys::cuMemcpyAsync(memory as u64, from, part.len(), self.stream) };
            check("copying from a device", result)?;
            self.wait()?;
            // SAFETY: the copy has ended, and `part` does not overlap the page-locked memory.
            unsafe { memory.copy_to_nonoverlapping(part.as_mut_ptr(), part.len()) };
            from += part.len() as u64;
        }
        Ok(())
    }

    /// Frees the memory.
    ///
    /// # Safety
    /// A context is current, and the stream is idle.
    pub(super) unsafe fn free(&mut self) {
        if !self.memory.is_null() {
            // SAFETY: the memory was allocated by `cuMemHostAlloc`, and no copy uses it.
            unsafe { sys::cuMemFreeHost(self.memory.cast()) };
            self.memory = std::ptr::null_mut();
        }
    }
}
