//! Zeroed memory in pages as large as the system has.
//!
//! Weights are read from end to end for every token. With pages of 4 KiB a core looks up an address every 64 lines, and its
//! prefetcher stops at each page's end: on a virtual machine that costs up to half the bandwidth.
#![allow(unsafe_code)]

use std::io;

use memmap2::MmapMut;

/// A page that large memory asks for: that of x86-64, and of AArch64 with small pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// Zeroed bytes. They begin at a page, and at a huge page if they fill one. No memory is taken for pages that nobody writes.
#[derive(Debug)]
pub(crate) struct Pages {
    ptr: *mut u8,
    len: usize,
    /// What the bytes lie in.
    _map: MmapMut,
}

// SAFETY: they are memory; whoever reads and writes it through the pointer synchronises.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// # Errors
    /// When the system has not so much memory.
    pub(crate) fn zeroed(len: usize) -> io::Result<Pages> {
        let room = if len >= HUGE { HUGE } else { 0 };
        let all = len.checked_add(room).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(all.max(1))?;
        let ptr = map.as_mut_ptr();
        let start = ptr.align_offset(HUGE).min(room);
        #[cfg(target_os = "linux")]
        if room > 0 {
            // A system without huge pages refuses, and gives small ones.
            let _ = map.advise_range(memmap2::Advice::HugePage, start, len);
        }
        Ok(Pages {
            ptr: ptr.wrapping_add(start),
            len,
            _map: map,
        })
    }

    /// The first byte.
    pub(crate) const fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes are inside of the map, initialised, and borrowed with it.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }

    /// All bytes, to be written.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_begins_at_a_page() {
        for len in [0, 1, 4096, HUGE - 1, HUGE, 3 * HUGE + 5] {
            let mut pages = Pages::zeroed(len).expect("memory");
            assert_eq!(pages.bytes().len(), len);
            assert!(pages.bytes().iter().all(|b| *b == 0));
            let align = if len >= HUGE { HUGE } else { 4096 };
            assert_eq!(pages.ptr().align_offset(align), 0);
            pages.bytes_mut().fill(1);
        }
    }

    #[test]
    fn more_than_all_memory_is_an_error() {
        assert!(Pages::zeroed(usize::MAX).is_err());
        assert!(Pages::zeroed(usize::MAX / 4).is_err());
    }
}
