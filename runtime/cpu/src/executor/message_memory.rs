//! Memory of messages between ranks.
#![allow(unsafe_code)]

use std::io;

use crate::pages::Pages;
use crate::view::View;

/// Memory that grows between batches.
#[derive(Debug)]
pub(super) struct Memory {
    pages: Pages,
}

impl Memory {
    pub(super) fn new() -> io::Result<Memory> {
        let pages = Pages::zeroed(0)?;
        Ok(Memory { pages })
    }

    pub(super) fn grow(&mut self, bytes: usize) -> io::Result<*mut u8> {
        if self.pages.bytes().len() < bytes {
            self.pages = Pages::zeroed(bytes)?;
        }
        Ok(self.pages.ptr())
    }
}

/// Returns the bytes of a dense view.
pub(super) fn bytes_of(view: &View) -> usize {
    match view.is_empty() {
        true => 0,
        false => View::dense(view.ptr, view.dtype, view.ne).nb[3] * view.ne[3],
    }
}

/// Returns the bytes at a dense view.
///
/// # Safety
/// The bytes exist, and no thread writes them.
pub(super) unsafe fn slice<'a>(view: &View) -> &'a [u8] {
    match bytes_of(view) {
        0 => &[],
        // SAFETY: caller's contract.
        n => unsafe { std::slice::from_raw_parts(view.ptr, n) },
    }
}

/// Returns the bytes at a dense view for writing.
///
/// # Safety
/// The bytes exist, and no other thread uses them.
pub(super) unsafe fn slice_mut<'a>(view: &View) -> &'a mut [u8] {
    match bytes_of(view) {
        0 => &mut [],
        // SAFETY: caller's contract.
        n => unsafe { std::slice::from_raw_parts_mut(view.ptr, n) },
    }
}
