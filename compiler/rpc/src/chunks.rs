use crate::buffers::Span;
use crate::request::Pieces;

/// The maximum number of bytes of a chunk.
const CHUNK: u64 = 1 << 20;

/// The data of a transfer, in chunks of bounded size. A chunk has parts of one or more pieces.
pub(crate) struct Chunks<'a> {
    span: Span,
    pieces: &'a Pieces,
    /// The number of the current piece.
    piece: u64,
    /// The number of bytes of the current piece in earlier chunks.
    done: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    /// The sum of the parts' lengths.
    pub(crate) bytes: usize,
    pub(crate) parts: Vec<Span>,
}

impl<'a> Chunks<'a> {
    /// Splits `pieces` into chunks. `span` starts at the first piece and ends with the last one.
    pub(crate) const fn new(span: Span, pieces: &'a Pieces) -> Chunks<'a> {
        Chunks {
            span,
            pieces,
            piece: 0,
            done: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Option<Chunk> {
        let mut chunk = Chunk::default();
        let mut left = CHUNK;
        while self.piece < self.pieces.count && left > 0 && self.pieces.size > 0 {
            let len = (self.pieces.size - self.done).min(left);
            chunk.parts.push(Span {
                start: self.span.start + self.piece * self.pieces.stride + self.done,
                len,
                ..self.span
            });
            chunk.bytes += usize::try_from(len).unwrap_or(0);
            left -= len;
            self.done += len;
            if self.done == self.pieces.size {
                self.piece += 1;
                self.done = 0;
            }
        }
        (chunk.bytes > 0).then_some(chunk)
    }
}
