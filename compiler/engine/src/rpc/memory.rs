//! The server's copy of a client's buffers.

use std::collections::BTreeMap;

use tpc_rpc::Span;

#[derive(Debug, Default)]
pub(super) struct Memory {
    buffers: BTreeMap<u64, Buffer>,
}

#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
    /// Disjoint stale ranges (start, end). A graph computed these bytes without storing them here.
    stale: BTreeMap<u64, u64>,
}

impl Memory {
    /// Allocates a zeroed buffer. Returns false if memory is too small.
    pub(super) fn allocate(&mut self, whole: Span) -> bool {
        let Ok(len) = usize::try_from(whole.len) else {
            return false;
        };
        let mut bytes = Vec::new();
        if bytes.try_reserve_exact(len).is_err() {
            return false;
        }
        bytes.resize(len, 0);
        let stale = BTreeMap::new();
        self.buffers.insert(whole.buffer, Buffer { bytes, stale });
        true
    }

    pub(super) fn free(&mut self, buffer: u64) {
        self.buffers.remove(&buffer);
    }

    /// Returns the bytes of a span; empty if the buffer does not contain the span.
    pub(super) fn bytes(&self, span: Span) -> &[u8] {
        let range = || {
            Some(usize::try_from(span.start).ok()?..usize::try_from(span.start + span.len).ok()?)
        };
        let found = self.buffers.get(&span.buffer).zip(range());
        found.and_then(|(b, r)| b.bytes.get(r)).unwrap_or_default()
    }

    /// Returns the bytes of a span for writing, and removes the span from the stale ranges.
    pub(super) fn bytes_mut(&mut self, span: Span) -> &mut [u8] {
        let Some(buffer) = self.buffers.get_mut(&span.buffer) else {
            return &mut [];
        };
        remove_range(&mut buffer.stale, span.start, span.start + span.len);
        let range = (
            usize::try_from(span.start),
            usize::try_from(span.start + span.len),
        );
        let (Ok(start), Ok(end)) = range else {
            return &mut [];
        };
        buffer.bytes.get_mut(start..end).unwrap_or_default()
    }

    pub(super) fn mark_stale(&mut self, span: Span) {
        if let Some(buffer) = self.buffers.get_mut(&span.buffer).filter(|_| span.len > 0) {
            remove_range(&mut buffer.stale, span.start, span.start + span.len);
            buffer.stale.insert(span.start, span.start + span.len);
        }
    }

    pub(super) fn is_current(&self, span: Span) -> bool {
        let Some(buffer) = self.buffers.get(&span.buffer) else {
            return false;
        };
        let end = span.start + span.len;
        let last = buffer.stale.range(..end).next_back();
        last.is_none_or(|(_, stale)| *stale <= span.start)
    }
}

fn remove_range(ranges: &mut BTreeMap<u64, u64>, start: u64, end: u64) {
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
    fn writing_clears_the_stale_mark() {
        let mut m = Memory::default();
        assert!(m.allocate(span(0, 100)));
        m.mark_stale(span(10, 50));
        assert!(m.is_current(span(0, 10)) && m.is_current(span(60, 40)));
        assert!(
            !m.is_current(span(0, 11)) && !m.is_current(span(59, 1)) && !m.is_current(span(20, 5))
        );
        m.bytes_mut(span(20, 10)).fill(1);
        assert!(
            m.is_current(span(20, 10)) && !m.is_current(span(19, 2)) && !m.is_current(span(30, 1))
        );
        m.mark_stale(span(25, 10));
        m.bytes_mut(span(0, 100)).fill(2);
        assert!(m.is_current(span(0, 100)));
        assert_eq!(m.bytes(span(99, 1)), [2]);
        assert!(m.bytes(span(99, 2)).is_empty());
    }
}
