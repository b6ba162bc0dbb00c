use super::error::ArchError;

/// Maximum axis size. A tensor's number of elements then fits in 63 bits.
const MAX_SIZE: u64 = 1 << 40;

/// A tensor size, with the metadata keys that decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) n: u64,
    pub(crate) from: &'static str,
}

impl Size {
    pub(crate) const fn new(n: u64, from: &'static str) -> Size {
        Size { n, from }
    }

    /// Returns the size `n`, a count or a sum of a few sizes, or [`ArchError::Overflow`].
    pub(crate) fn try_new(n: u64, from: &'static str) -> Result<Size, ArchError> {
        Size::product(1, n, from)
    }

    /// Returns the size `a · b`, or [`ArchError::Overflow`].
    pub(crate) fn product(a: u64, b: u64, from: &'static str) -> Result<Size, ArchError> {
        match a.checked_mul(b) {
            Some(n) if n <= MAX_SIZE => Ok(Size { n, from }),
            _ => Err(ArchError::Overflow {
                what: from,
                of: if a == 1 {
                    b.to_string()
                } else {
                    format!("{a} × {b}")
                },
            }),
        }
    }
}
