//! Merging neighbours, best pair first: what byte-pair encoding and SentencePiece have in common.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// No symbol, and no piece.
pub(crate) const NONE: u32 = u32::MAX;

/// A part of a text: a character at first, longer after merges.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// First byte of the part in the text.
    start: u32,
    /// The byte after its last; equal to `start` for a symbol that a merge took in.
    end: u32,
    /// The number of its text, or [`NONE`] for a text without one.
    pub(crate) piece: u32,
    previous: u32,
    next: u32,
}

impl Symbol {
    /// The bytes of the text.
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A pair that may be merged. The order is that of merges: by rank, then from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    piece: u32,
    /// Where the right part ended when the pair was found. Has it grown, or are the two no neighbours any more, the pair
    /// is out of date; the left one cannot grow otherwise.
    end: u32,
}

/// The merge of one text, with buffers that the next text uses again.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    /// Begins a text without symbols.
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Appends the symbol of the bytes from the last one's end to `end`. A text has fewer than 2^32 - 1 bytes.
    pub(crate) fn push(&mut self, end: usize, piece: u32) {
        let number = |n: usize| u32::try_from(n).expect("invariant: texts are shorter than 4 GiB");
        let at = number(self.symbols.len());
        let start = self.symbols.last().map_or(0, |s| s.end);
        if let Some(last) = self.symbols.last_mut() {
            last.next = at;
        }
        self.symbols.push(Symbol {
            start,
            end: number(end),
            piece,
            previous: at.checked_sub(1).unwrap_or(NONE),
            next: NONE,
        });
    }

    /// Merges neighbours until no pair has a rank. `rank` gives the rank of a pair, the smallest first, and the piece that
    /// it becomes.
    ///
    /// A text of `n` symbols takes at most `3 n` calls of `rank` and `O(n log n)` steps.
    pub(crate) fn run(&mut self, rank: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        let mut found = std::mem::take(&mut self.queue).into_vec();
        for right in 1..self.symbols.len() {
            let right = u32::try_from(right).expect("invariant: as many as were pushed");
            found.extend(self.candidate(right - 1, right, &rank).map(Reverse));
        }
        self.queue = BinaryHeap::from(found);
        while let Some(Reverse(best)) = self.queue.pop() {
            let left = self.symbols[best.left as usize];
            let right = self.symbols[best.right as usize];
            let alive = left.start < left.end && right.start < right.end;
            if !alive || left.next != best.right || right.end != best.end {
                continue;
            }
            self.symbols[best.right as usize].end = right.start;
            let merged = &mut self.symbols[best.left as usize];
            (merged.end, merged.piece, merged.next) = (best.end, best.piece, right.next);
            if right.next != NONE {
                self.symbols[right.next as usize].previous = best.left;
            }
            for (a, b) in [(left.previous, best.left), (best.left, right.next)] {
                if a != NONE && b != NONE {
                    let candidate = self.candidate(a, b, &rank);
                    self.queue.extend(candidate.map(Reverse));
                }
            }
        }
    }

    fn candidate(
        &self,
        left: u32,
        right: u32,
        rank: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>,
    ) -> Option<Candidate> {
        let (l, r) = (&self.symbols[left as usize], &self.symbols[right as usize]);
        let (rank, piece) = rank(l, r)?;
        Some(Candidate {
            rank,
            left,
            right,
            piece,
            end: r.end,
        })
    }

    /// The symbols that are left, in the order of the text.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|s| s.start < s.end)
    }
}
