use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::refusal::Refusal;
use crate::request::Pieces;
use crate::tensor::Tensor;

/// The alignment of tensors, in bytes.
pub const ALIGNMENT: u64 = 128;

/// The first address. Address 0 means no buffer.
const FIRST: u64 = 1 << 40;

/// The memory pool that all connections share.
#[derive(Debug)]
pub struct Pool {
    total: u64,
    used: AtomicU64,
}

impl Pool {
    /// Creates a pool of `total` bytes.
    pub const fn new(total: u64) -> Pool {
        Pool {
            total,
            used: AtomicU64::new(0),
        }
    }

    /// Returns the size of the pool in bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Returns the unallocated bytes.
    pub fn free(&self) -> u64 {
        self.total.saturating_sub(self.used.load(Ordering::SeqCst))
    }

    /// Reserves `bytes`. Returns false if the pool has too few free bytes.
    fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|&n| n <= self.total);
        let order = Ordering::SeqCst;
        self.used.fetch_update(order, order, more).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::SeqCst);
    }
}

/// A byte range of a buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// The buffer's id, which is also its address.
    pub buffer: u64,
    /// The offset in the buffer, in bytes.
    pub start: u64,
    /// The length in bytes.
    pub len: u64,
}

#[derive(Debug)]
struct Buffer {
    base: u64,
    size: u64,
}

/// The buffers of a connection: addresses and sizes. The [`Client`](crate::Client) holds the contents.
#[derive(Debug)]
pub struct Buffers {
    pool: Arc<Pool>,
    buffers: BTreeMap<u64, Buffer>,
    most: usize,
    next_address: u64,
}

impl Buffers {
    /// Creates a set of at most `most` buffers.
    pub const fn new(pool: Arc<Pool>, most: usize) -> Buffers {
        Buffers {
            pool,
            buffers: BTreeMap::new(),
            most,
            next_address: FIRST,
        }
    }

    /// Returns the shared memory pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Allocates a buffer. Returns its id, or `None` if the pool has too few free bytes.
    ///
    /// # Errors
    /// Returns [`Refusal::Limit`] if the connection has the maximum number of buffers.
    pub fn allocate(&mut self, size: u64) -> Result<Option<u64>, Refusal> {
        if self.buffers.len() >= self.most {
            return Err(Refusal::Limit {
                what: "buffers of a connection",
                asked: self.most as u64 + 1,
                most: self.most as u64,
            });
        }
        let base = self.next_address;
        let next = base
            .checked_add(size)
            .and_then(|end| end.checked_add(1))
            .and_then(|end| end.checked_next_multiple_of(1 << 12))
            .filter(|_| self.pool.take(size));
        let Some(next) = next else {
            return Ok(None);
        };
        // Addresses are never reused, so a stale tensor cannot refer to a newer buffer.
        self.next_address = next;
        self.buffers.insert(base, Buffer { base, size });
        Ok(Some(base))
    }

    /// Returns the address and the full span of a buffer.
    ///
    /// # Errors
    /// Returns [`Refusal::Memory`] if the buffer does not exist.
    pub fn whole(&self, buffer: u64) -> Result<(u64, Span), Refusal> {
        let found = self.buffers.get(&buffer).ok_or_else(|| {
            Refusal::Memory(format!("the connection does not own buffer {buffer:#x}"))
        })?;
        let span = Span {
            buffer,
            start: 0,
            len: found.size,
        };
        Ok((found.base, span))
    }

    /// Frees a buffer.
    ///
    /// # Errors
    /// Returns [`Refusal::Memory`] if the buffer does not exist.
    pub fn free(&mut self, buffer: u64) -> Result<(), Refusal> {
        let (_, span) = self.whole(buffer)?;
        self.buffers.remove(&buffer);
        self.pool.give_back(span.len);
        Ok(())
    }

    /// Returns the byte range of a tensor. An empty tensor needs no buffer.
    ///
    /// # Errors
    /// Returns [`Refusal::Memory`] if the tensor is not within its buffer.
    pub fn span(&self, tensor: &Tensor) -> Result<Span, Refusal> {
        let name = &tensor.name;
        let outside = || Refusal::Memory(format!("the tensor \"{name}\" is not within its buffer"));
        let len = tensor.bytes().ok_or_else(outside)?;
        if (tensor.buffer, len) == (0, 0) {
            return Ok(Span::default());
        }
        if tensor.buffer == 0 {
            let message = format!("the tensor \"{name}\" has elements but no buffer");
            return Err(Refusal::Memory(message));
        }
        let (base, whole) = self.whole(tensor.buffer)?;
        if len == 0 {
            // A device without a share of a split tensor gets empty tensors at the offsets of the others.
            return Ok(Span {
                start: 0,
                len,
                ..whole
            });
        }
        let start = tensor.data.checked_sub(base).ok_or_else(outside)?;
        let end = start.checked_add(len).filter(|&end| end <= whole.len);
        end.map(|_| Span {
            start,
            len,
            ..whole
        })
        .ok_or_else(outside)
    }

    /// Returns the byte range from the first piece to the end of the last one.
    ///
    /// # Errors
    /// Returns [`Refusal::Memory`] if a piece is not within the tensor, or the tensor not within its buffer.
    pub fn pieces(&self, pieces: &Pieces) -> Result<Span, Refusal> {
        let outside = || {
            Refusal::Memory(format!(
                "{} pieces of the tensor \"{}\", {} bytes apart, exceed every memory",
                pieces.count, pieces.tensor.name, pieces.stride
            ))
        };
        let before = pieces.count.saturating_sub(1).checked_mul(pieces.stride);
        let len = before.and_then(|n| n.checked_add(pieces.size));
        let (offset, size, tensor) = (pieces.offset, len.ok_or_else(outside)?, &pieces.tensor);
        let span = self.span(tensor)?;
        let left = span.len.checked_sub(offset);
        if left.is_none_or(|left| left < size) {
            return Err(Refusal::Memory(format!(
                "{size} bytes from offset {offset} are not within the {} bytes of the tensor \"{}\"",
                span.len, tensor.name
            )));
        }
        Ok(Span {
            start: span.start + offset,
            len: size,
            ..span
        })
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        let used = self.buffers.values().map(|b| b.size).sum();
        self.pool.give_back(used);
    }
}
