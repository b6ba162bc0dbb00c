//! The memory of a program.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};

use tpc_runtime::ExecError;

/// Bytes that begin at a page. They are zero, and no memory is taken for pages that nobody writes.
#[derive(Debug)]
pub(super) struct Region {
    ptr: *mut u8,
    layout: Layout,
}

const PAGE: usize = 4096;

// SAFETY: a region is memory; whoever reads and writes it through its pointer synchronises.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// # Errors
    /// [`ExecError::Size`] when there is not so much memory.
    pub(super) fn new(bytes: u64) -> Result<Region, ExecError> {
        let large = || ExecError::Size {
            what: format!("{bytes} bytes of an arena"),
        };
        let size = usize::try_from(bytes).map_err(|_| large())?.max(1);
        let layout = Layout::from_size_align(size, PAGE).map_err(|_| large())?;
        // SAFETY: the size is not 0.
        let ptr = unsafe { alloc_zeroed(layout) };
        if ptr.is_null() {
            return Err(large());
        }
        Ok(Region { ptr, layout })
    }

    /// The first byte.
    pub(super) const fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// Some bytes, to fill them before anything runs.
    ///
    /// # Errors
    /// [`ExecError::Malformed`] when it has no such bytes.
    pub(super) fn range(&mut self, at: u64, len: usize) -> Result<&mut [u8], ExecError> {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        if at
            .checked_add(len)
            .is_none_or(|end| end > self.layout.size())
        {
            return Err(ExecError::Malformed {
                what: format!("{len} bytes at {at} of an arena of {}", self.layout.size()),
            });
        }
        // SAFETY: the bytes are inside, initialised, and borrowed with the region.
        Ok(unsafe { std::slice::from_raw_parts_mut(self.ptr.add(at), len) })
    }

    /// All bytes zero.
    pub(super) fn clear(&mut self) {
        // SAFETY: the whole region.
        unsafe { self.ptr.write_bytes(0, self.layout.size()) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.ptr, self.layout) };
    }
}
