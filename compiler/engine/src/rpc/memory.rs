//! The memory of a client's buffers, whole, with the bytes that nothing has kept.

use std::collections::BTreeMap;

use tpc_rpc::Span;

/// The bytes of each buffer.
#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: BTreeMap<u64, Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Ranges that a graph has computed and not written here, by their starts.
    lost: BTreeMap<u64, u64>,
}

impl Memory {
    /// Makes a buffer. Its pages are taken when they are written.
    pub(super) fn allocate(&mut self, whole: Span) -> bool {
        let Ok(len) = usize::try_from(whole.len) else {
            return false;
        };
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(len).is_err() {
            return false;
        }
        bytes.resize(len, 0);
        let lost = BTreeMap::new();
        self.buffers.insert(whole.buffer, Buffer { bytes, lost });
        true
    }

    pub(super) fn free(&mut self, buffer: u64) {
        self.buffers.remove(&buffer);
    }

    /// Bytes; none where they are not there.
    pub(super) fn bytes(&self, span: Span) -> &[u8] {
        let range = || {
            Some(usize::try_from(span.start).ok()?..usize::try_from(span.start + span.len).ok()?)
        };
        let found = self.buffers.get(&span.buffer).zip(range());
        found.and_then(|(b, r)| b.bytes.get(r)).unwrap_or_default()
    }

    /// Bytes to be written, which are kept from then on.
    pub(super) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        let Some(buffer) = self.buffers.get_mut(&span.buffer) else {
            return &mut [];
        };
        forget(&mut buffer.lost, span.start, span.start + span.len);
        let range = (
            usize::try_from(span.start),
            usize::try_from(span.start + span.len),
        );
        let (Ok(start), Ok(end)) = range else {
            return &mut [];
        };
        buffer.bytes.get_mut(start..end).unwrap_or_default()
    }

    /// A graph has computed these bytes and keeps them elsewhere, or nowhere.
    pub(super) fn lose(&mut self, span: Span) {
        if let Some(buffer) = self.buffers.get_mut(&span.buffer).filter(|_| span.len > 0) {
            forget(&mut buffer.lost, span.start, span.start + span.len);
            buffer.lost.insert(span.start, span.start + span.len);
        }
    }

    /// Whether all of these bytes are kept.
    pub(super) fn is_kept(&self, span: Span) -> bool {
        let Some(buffer) = self.buffers.get(&span.buffer) else {
            return false;
        };
        let end = span.start + span.len;
        let last = buffer.lost.range(..end).next_back();
        last.is_none_or(|(_, lost)| *lost <= span.start)
    }
}

/// Removes a range from disjoint ranges.
fn forget(ranges: &mut BTreeMap<u64, u64>, start: u64, end: u64) {
    let first = ranges
        .range(..start)
        .next_back()
        .map(|(&from, &to)| (from, to));
    if let Some((from, to)) = first.filter(|(_, to)| *to > start) {
        ranges.insert(from, start);
        if to > end {
            ranges.insert(end, to);
        }
    }
    let within: Vec<(u64, u64)> = ranges.range(start..end).map(|(&a, &b)| (a, b)).collect();
    for (from, to) in within {
        ranges.remove(&from);
        if to > end {
            ranges.insert(end, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, len: u64) -> Span {
        Span {
            buffer: 1,
            start,
            len,
        }
    }

    #[test]
    fn what_is_written_is_kept_again() {
        let mut m = Memory::default();
        assert!(m.allocate(span(0, 100)));
        m.lose(span(10, 50));
        assert!(m.is_kept(span(0, 10)) && m.is_kept(span(60, 40)));
        assert!(!m.is_kept(span(0, 11)) && !m.is_kept(span(59, 1)) && !m.is_kept(span(20, 5)));
        m.bytes_mut(span(20, 10)).fill(1);
        assert!(m.is_kept(span(20, 10)) && !m.is_kept(span(19, 2)) && !m.is_kept(span(30, 1)));
        m.lose(span(25, 10));
        m.bytes_mut(span(0, 100)).fill(2);
        assert!(m.is_kept(span(0, 100)));
        assert_eq!(m.bytes(span(99, 1)), [2]);
        assert!(m.bytes(span(99, 2)).is_empty());
    }
}
