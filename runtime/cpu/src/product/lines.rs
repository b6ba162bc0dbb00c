//! Bytes that start at a cache line.
#![expect(unsafe_code, reason = "aligned memory as bytes")]

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Line([u8; 64]);

/// Zeroed bytes that start at a cache line.
#[derive(Clone, Debug)]
pub(super) struct Lines {
    lines: Vec<Line>,
    len: usize,
}

impl Lines {
    pub(super) fn zeroed(len: usize) -> Lines {
        Lines {
            lines: vec![Line([0; 64]); len.div_ceil(64)],
            len,
        }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: lines are plain bytes without padding, and there are `len` or more of them.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and the borrow is unique.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}
