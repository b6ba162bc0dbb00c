//! Zeroed memory in huge pages.
//!
//! Every token reads all weights. With 4 KiB pages, a core translates an address every 64 cache lines, and its
//! prefetcher stops at each page's end. On a virtual machine this costs up to half the bandwidth.
#![allow(unsafe_code)]

use std::io;
use std::marker::PhantomData;

use memmap2::MmapMut;

/// Bytes of a huge page on x86-64, and on AArch64 with 4 KiB pages.
const HUGE: usize = 2 << 20;
/// Minimum bytes for huge pages, more than a core's TLB covers with small pages. Smaller memory occupies only written
/// pages.
const LARGE: usize = 16 << 20;

/// Zeroed bytes, aligned to a page, or to a huge page if at least [`LARGE`]. Unwritten pages take no memory.
#[derive(Debug)]
pub(crate) struct Pages {
    ptr: *mut u8,
    len: usize,
    _map: MmapMut,
}

// SAFETY: pages are plain memory; users of the pointer synchronise their accesses.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    pub(crate) fn zeroed(len: usize) -> io::Result<Pages> {
        let room = if len >= LARGE { HUGE } else { 0 };
        let all = len.checked_add(room).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut map = MmapMut::map_anon(all.max(1))?;
        let ptr = map.as_mut_ptr();
        let start = ptr.align_offset(HUGE).min(room);
        #[cfg(target_os = "linux")]
        if room > 0 {
            // Without huge pages this fails, and small pages remain.
            let _ = map.advise_range(memmap2::Advice::HugePage, start, len);
        }
        Ok(Pages {
            ptr: ptr.wrapping_add(start),
            len,
            _map: map,
        })
    }

    pub(crate) const fn ptr(&self) -> *mut u8 {
        self.ptr
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the bytes are inside the map, initialised, and borrowed with it.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.len) }
    }
}

/// A type with zero bytes as a valid value.
///
/// # Safety
/// Zero bytes are valid, and the type contains no references.
pub(crate) unsafe trait Zero: Copy {}

// SAFETY: numbers.
unsafe impl Zero for f32 {}
// SAFETY: numbers.
unsafe impl Zero for u32 {}

/// Zeroed elements shared by threads. Unwritten pages take no memory; an allocator cannot guarantee this, because it
/// may reuse memory.
#[derive(Debug)]
pub(crate) struct Zeroed<T> {
    pages: Pages,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Zero> Zeroed<T> {
    pub(crate) fn new(len: usize) -> io::Result<Zeroed<T>> {
        let bytes = len.checked_mul(size_of::<T>());
        Ok(Zeroed {
            pages: Pages::zeroed(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?,
            len,
            of: PhantomData,
        })
    }

    pub(crate) const fn ptr(&self) -> *mut T {
        self.pages.ptr().cast()
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_begins_at_a_page() {
        for len in [0, 1, 4096, LARGE - 1, LARGE, LARGE + 5] {
            let mut pages = Pages::zeroed(len).expect("memory");
            assert_eq!(pages.bytes().len(), len);
            assert!(pages.bytes().iter().all(|b| *b == 0));
            let align = if len >= LARGE { HUGE } else { 4096 };
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
