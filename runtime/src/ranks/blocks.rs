//! The parts of a collective that ranks exchange.
//!
//! A sum over devices is a binary tree: devices 0 and 1, devices 2 and 3, then the two sums. A rank adds each aligned
//! subtree of its own devices and sends one tensor for it. The other ranks continue the tree from there, so the sum has
//! the bits of the same program in one process.

use tpc_ir::Op;

/// A part of the devices of a collective: `1 << level` neighbours, whose sum is known, or one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The first participant.
    pub first: usize,
    /// The level in the tree of sums; 0 for one device.
    pub level: u32,
    /// The rank of its devices.
    pub rank: usize,
}

/// The blocks of a collective, in the order of the participants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// The rank of each participant.
    pub ranks: Vec<usize>,
    /// The blocks.
    pub blocks: Vec<Block>,
}

impl Blocks {
    /// Returns the blocks of a collective among participants of these ranks. Only sums have blocks of several devices.
    pub fn of(op: &Op, ranks: Vec<usize>) -> Blocks {
        let sums = matches!(op, Op::AllReduce(_) | Op::ReduceScatter(_));
        let mut blocks = Vec::new();
        let mut first = 0;
        while let Some(&rank) = ranks.get(first) {
            let here = ranks[first..].iter().take_while(|r| **r == rank).count();
            let mut level = 0;
            // A block begins at a multiple of its size.
            while sums && first.is_multiple_of(2 << level) && 2 << level <= here {
                level += 1;
            }
            blocks.push(Block { first, level, rank });
            first += 1 << level;
        }
        Blocks { ranks, blocks }
    }

    /// Returns the participants of a rank.
    pub fn participants(&self, rank: usize) -> impl Iterator<Item = usize> + '_ {
        let all = self.ranks.iter().enumerate();
        all.filter(move |(_, r)| **r == rank).map(|(i, _)| i)
    }

    /// Returns the other ranks that take part, in order.
    pub fn others(&self, rank: usize) -> Vec<usize> {
        let mut out: Vec<usize> = self.ranks.iter().copied().filter(|r| *r != rank).collect();
        out.sort_unstable();
        out.dedup();
        out
    }
}

/// A range of an axis that a rank needs of each operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The axis.
    pub axis: usize,
    /// The first index.
    pub start: usize,
    /// The number of indices.
    pub len: usize,
}

/// Returns the range of each operand that the results of these participants need; `None` for all of it.
pub fn cut(op: &Op, participants: impl Iterator<Item = usize>) -> Option<Range> {
    let (axis, counts) = match op {
        Op::ReduceScatter(op) => (op.axis, &op.counts),
        Op::AllToAll(op) => (op.cut, &op.counts),
        _ => return None,
    };
    let start_of = |i: usize| counts.iter().take(i).sum::<u64>() as usize;
    let mut ends: Option<(usize, usize)> = None;
    for i in participants.filter(|i| *i < counts.len()) {
        let (start, end) = (start_of(i), start_of(i + 1));
        ends = Some(match ends {
            Some((a, b)) => (a.min(start), b.max(end)),
            None => (start, end),
        });
    }
    let (start, end) = ends?;
    Some(Range {
        axis: axis as usize,
        start,
        len: end - start,
    })
}
