//! The memory of a program.

use std::ops::Range;

use tpc_ir::DType;
use tpc_ir::program::BatchLayout;
use tpc_runtime::ExecError;

use crate::pages::Pages;
use crate::view::View;

/// An arena, initially zero. Pages take memory only after a write.
#[derive(Debug)]
pub(super) struct Region(Pages);

fn span(at: u64, len: usize) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    Some(at..at.checked_add(len)?)
}

fn outside(at: u64, len: usize, size: usize) -> ExecError {
    ExecError::Malformed {
        what: format!("{len} bytes at {at} exceed an arena of {size} bytes"),
    }
}

impl Region {
    pub(super) fn new(bytes: u64) -> Result<Region, ExecError> {
        let size = usize::try_from(bytes).unwrap_or(usize::MAX);
        let pages = Pages::zeroed(size).map_err(|e| ExecError::Size {
            what: format!("of an arena ({bytes} bytes: {e})"),
        })?;
        Ok(Region(pages))
    }

    pub(super) const fn ptr(&self) -> *mut u8 {
        self.0.ptr()
    }

    /// Returns the size in bytes.
    pub(super) fn len(&self) -> usize {
        self.0.bytes().len()
    }

    pub(super) const fn view(&self, dtype: DType, at: &BatchLayout) -> View {
        View::located(self.ptr(), dtype, at)
    }

    /// Returns writable bytes. No worker may run.
    pub(super) fn range(&mut self, at: u64, len: usize) -> Result<&mut [u8], ExecError> {
        let size = self.len();
        let bytes = self.0.bytes_mut();
        let bytes = span(at, len).and_then(|span| bytes.get_mut(span));
        bytes.ok_or_else(|| outside(at, len, size))
    }

    /// Returns readable bytes. No worker may run.
    pub(super) fn bytes(&self, at: u64, len: usize) -> Result<&[u8], ExecError> {
        let bytes = self.0.bytes();
        let found = span(at, len).and_then(|span| bytes.get(span));
        found.ok_or_else(|| outside(at, len, bytes.len()))
    }

    pub(super) fn clear(&mut self) {
        self.0.bytes_mut().fill(0);
    }
}
