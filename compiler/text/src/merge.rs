//! Merges neighbours, best pair first, for byte-pair encoding and SentencePiece.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

/// A missing symbol or piece.
pub(crate) const NONE: u32 = u32::MAX;

/// A part of a text: a character, or a merge of several.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Symbol {
    /// The offset of the first byte in the text.
    start: u32,
    /// The offset after the last byte; equal to `start` after a merge into the left neighbour.
    end: u32,
    /// The index of the part's text, or [`NONE`].
    pub(crate) piece: u32,
    previous: u32,
    next: u32,
}

impl Symbol {
    pub(crate) fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A candidate pair, ordered by rank, then from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    rank: u32,
    left: u32,
    right: u32,
    piece: u32,
    /// The right part's end when the pair was found. If the right part has changed since, the pair is stale. The left
    /// part can only grow by merging this neighbour.
    end: u32,
}

/// A reusable merger; buffers are kept between texts.
#[derive(Debug, Default)]
pub(crate) struct Merger {
    symbols: Vec<Symbol>,
    queue: BinaryHeap<Reverse<Candidate>>,
}

impl Merger {
    pub(crate) fn clear(&mut self) {
        self.symbols.clear();
        self.queue.clear();
    }

    /// Appends a symbol up to byte `end`. A text must have fewer than 2^32 - 1 bytes.
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

    /// Merges neighbours until no pair has a rank. `rank` returns a pair's rank and the merged piece; smaller ranks
    /// merge first.
    ///
    /// A text of `n` symbols takes at most `3 n` calls of `rank` and `O(n log n)` steps.
    pub(crate) fn run(&mut self, rank: impl Fn(&Symbol, &Symbol) -> Option<(u32, u32)>) {
        let mut found = std::mem::take(&mut self.queue).into_vec();
        for right in 1..self.symbols.len() {
            let right =
                u32::try_from(right).expect("invariant: `push` checks the number of symbols");
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

    /// Returns the remaining symbols in text order.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &Symbol> {
        self.symbols.iter().filter(|s| s.start < s.end)
    }
}
