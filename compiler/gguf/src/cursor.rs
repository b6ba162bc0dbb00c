//! A bounded reader of a header's bytes.

use super::error::{GgufError, GgufErrorKind};

/// The byte order of a file's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Endianness {
    /// Least significant byte first, as in nearly all files.
    Little,
    /// Most significant byte first (version 3, for big-endian machines).
    Big,
}

/// A position in a header's bytes. Every read and every count is checked against the remaining bytes.
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
    /// True if `bytes` ends at the header limit.
    clipped: bool,
    /// Unread bytes after `bytes`, within the file and the header limit.
    behind: u64,
    pub(super) endianness: Endianness,
    pub(super) file: &'a str,
}

impl<'a> Cursor<'a> {
    /// Makes a cursor at the start of `bytes`, the beginning of a file of `file_len` bytes.
    pub(super) fn new(bytes: &'a [u8], file_len: u64, limit: usize, file: &'a str) -> Cursor<'a> {
        let clipped = bytes.len() > limit;
        let behind = file_len
            .min(limit as u64)
            .saturating_sub(bytes.len() as u64);
        let bytes = &bytes[..bytes.len().min(limit)];
        Cursor {
            bytes,
            at: 0,
            clipped,
            behind,
            endianness: Endianness::Little,
            file,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.at as u64
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn error_at(&self, offset: u64, kind: GgufErrorKind) -> GgufError {
        GgufError::new(self.file, kind).at(offset)
    }

    /// Returns the next `n` bytes; messages name them `reading`.
    pub(super) fn take(&mut self, n: u64, reading: &'static str) -> Result<&'a [u8], GgufError> {
        match usize::try_from(n) {
            Ok(n) if n <= self.left() => {
                let taken = &self.bytes[self.at..self.at + n];
                self.at += n;
                Ok(taken)
            }
            _ => Err(self.out_of_bytes(n, reading)),
        }
    }

    fn out_of_bytes(&self, needed: u64, reading: &'static str) -> GgufError {
        let kind = if self.clipped {
            GgufErrorKind::HeaderTooLarge {
                reading,
                limit: self.bytes.len() as u64,
            }
        } else {
            GgufErrorKind::TruncatedHeader {
                reading,
                needed,
                left: self.left() as u64,
            }
        };
        self.error_at(self.offset(), kind)
    }

    pub(super) fn chunk<const N: usize>(
        &mut self,
        reading: &'static str,
    ) -> Result<[u8; N], GgufError> {
        let bytes = self.take(N as u64, reading)?;
        Ok(*bytes
            .first_chunk::<N>()
            .expect("invariant: take returns the bytes asked for"))
    }

    pub(super) fn u32(&mut self, reading: &'static str) -> Result<u32, GgufError> {
        let raw = self.chunk(reading)?;
        Ok(match self.endianness {
            Endianness::Little => u32::from_le_bytes(raw),
            Endianness::Big => u32::from_be_bytes(raw),
        })
    }

    pub(super) fn u64(&mut self, reading: &'static str) -> Result<u64, GgufError> {
        let raw = self.chunk(reading)?;
        Ok(match self.endianness {
            Endianness::Little => u64::from_le_bytes(raw),
            Endianness::Big => u64::from_be_bytes(raw),
        })
    }

    /// Checks that the remaining bytes can hold `count` items of at least `min_bytes`; `offset` is the count's
    /// position.
    pub(super) fn check_count(
        &self,
        count: u64,
        min_bytes: u64,
        what: &'static str,
        offset: u64,
    ) -> Result<usize, GgufError> {
        let at_most = (self.left() as u64).saturating_add(self.behind) / min_bytes;
        match usize::try_from(count) {
            Ok(n) if count <= at_most => Ok(n),
            _ if self.clipped => {
                let limit = self.bytes.len() as u64;
                Err(self.error_at(
                    offset,
                    GgufErrorKind::HeaderTooLarge {
                        reading: what,
                        limit,
                    },
                ))
            }
            _ => Err(self.error_at(
                offset,
                GgufErrorKind::ImplausibleCount {
                    what,
                    count,
                    at_most,
                },
            )),
        }
    }
}
