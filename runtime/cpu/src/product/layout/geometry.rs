//! Byte positions of the steps of a panel.

use super::{Codes, Layout, STEP, Scales};
use std::ops::Range;

/// Shape of a stored type's panels over a part of K.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::product) struct Geometry {
    /// Number of blocks of 32.
    pub blocks: usize,
    /// Blocks of the first step that precede the part.
    pub skip: usize,
    body: usize,
    /// Bytes of a head, without bytes per block.
    head: usize,
    head_block: usize,
    behind: usize,
    /// Bytes of all steps, in whole cache lines.
    steps_bytes: usize,
    /// Bytes of a panel, in whole cache lines.
    pub panel: usize,
}

#[derive(Debug)]
pub(in crate::product) struct Step {
    pub head: Range<usize>,
    /// Position of the step's trailing scales in the panel.
    pub behind: usize,
    /// Position of the first requested block's body in the panel.
    pub body: usize,
    /// The requested blocks, numbered within the step.
    pub blocks: Range<usize>,
}

impl Geometry {
    /// Returns the geometry of `blocks` blocks of 32, starting at block `first` of the file's rows.
    pub(in crate::product) fn new<L: Layout>(first: usize, blocks: usize) -> Geometry {
        let (per_block, bytes) = (L::Scales::PER_BLOCK, L::Scales::HEAD);
        let (head, head_block) = if per_block { (0, bytes) } else { (bytes, 0) };
        let body = L::Codes::BYTES;
        let skip = if per_block { 0 } else { first % STEP };
        let steps = (skip + blocks).div_ceil(STEP);
        let all = steps * head + blocks * (head_block + body);
        let steps_bytes = all.next_multiple_of(64);
        Geometry {
            blocks,
            skip,
            body,
            head,
            head_block,
            behind: L::Scales::BEHIND,
            steps_bytes,
            panel: (steps_bytes + steps * L::Scales::BEHIND).next_multiple_of(64),
        }
    }

    /// Returns the step of block `at`, from this block to block `end` or the end of the step.
    #[inline(always)]
    pub(in crate::product) fn step(&self, at: usize, end: usize) -> Step {
        let index = (at + self.skip) / STEP;
        let first = if index == 0 { self.skip } else { 0 };
        let start = index * STEP + first - self.skip;
        let stored = STEP - first;
        let stored = stored.min(self.blocks - start);
        let head = start * (self.head_block + self.body) + index * self.head;
        let from = at - start;
        let bodies = head + self.head + stored * self.head_block;
        Step {
            head: head..bodies,
            behind: self.steps_bytes + index * self.behind,
            body: bodies + from * self.body,
            blocks: first + from..first + (end - start).min(stored),
        }
    }

    /// Returns the position of the trailing scales after all steps.
    pub(in crate::product) const fn steps_bytes(&self) -> usize {
        self.steps_bytes
    }
}
