//! Collectives among ranks: each rank adds the blocks of its own devices, and the ranks exchange the blocks.
#![allow(unsafe_code)]

use std::io;

use tpc_ir::{DType, Op};
use tpc_runtime::ranks::{Blocks, Incoming, Outgoing, RankError, Tag, Transport, cut};

use super::collective::{Parts, sum};
use super::io::pack;
use super::message_memory::{Memory, bytes_of, slice, slice_mut};
use crate::error::KernelError;
use crate::view::View;
use crate::worker::Worker;

/// A collective with participants on other ranks.
#[derive(Debug)]
pub(super) struct Joint {
    op: Op,
    blocks: Blocks,
    tag: Tag,
    memory: Memory,
    views: Vec<View>,
    levels: Vec<u32>,
    bases: Vec<usize>,
    /// Own operands to add, and the memory of their sum.
    sums: Vec<(Vec<View>, View)>,
    sends: Vec<Send>,
    receives: Vec<Receive>,
}

#[derive(Debug)]
struct Send {
    to: usize,
    views: Vec<View>,
    memory: View,
}

#[derive(Debug)]
struct Receive {
    from: usize,
    memory: View,
}

/// Assigns addresses to tensors of a collective.
struct Room {
    at: usize,
    base: *mut u8,
}

impl Room {
    fn dense(&mut self, dtype: DType, ne: [usize; 4]) -> View {
        let view = View::dense(self.base.wrapping_add(self.at), dtype, ne);
        self.at += bytes_of(&view).next_multiple_of(64);
        view
    }

    /// Returns bytes as a view.
    fn bytes(&mut self, n: usize) -> View {
        self.dense(DType::I8, [n, 1, 1, 1])
    }
}

impl Joint {
    pub(super) fn new(op: Op, blocks: Blocks, tag: Tag) -> io::Result<Joint> {
        Ok(Joint {
            op,
            blocks,
            tag,
            memory: Memory::new()?,
            views: Vec::new(),
            levels: Vec::new(),
            bases: Vec::new(),
            sums: Vec::new(),
            sends: Vec::new(),
            receives: Vec::new(),
        })
    }

    /// Returns the operands of the collective: the blocks of all ranks.
    pub(super) fn parts(&self) -> Parts<'_> {
        Parts {
            views: &self.views,
            levels: &self.levels,
            bases: &self.bases,
        }
    }

    /// Computes the worker's share of this rank's blocks.
    ///
    /// # Safety
    /// The operands of this rank are written, and do not change until the collective ends.
    pub(super) unsafe fn add(&self, worker: &Worker<'_>) -> Result<(), KernelError> {
        for (operands, out) in &self.sums {
            // SAFETY: caller's contract; the memory of the sum belongs to this collective.
            unsafe { sum(worker, Parts::all(operands), out)? };
        }
        Ok(())
    }

    /// Sends this rank's blocks to the other ranks, and receives theirs.
    ///
    /// # Safety
    /// All workers have computed their shares of the blocks, and one thread calls this method.
    pub(super) unsafe fn exchange(&self, transport: &dyn Transport) -> Result<(), RankError> {
        let sends: Vec<Outgoing<'_>> = (self.sends.iter())
            .map(|send| Outgoing {
                to: send.to,
                tag: self.tag,
                // SAFETY: the views are complete, and the memory belongs to this collective.
                bytes: unsafe { packed(send) },
            })
            .collect();
        let receives = self.receives.iter();
        let mut receives: Vec<Incoming<'_>> = receives
            .map(|receive| Incoming {
                from: receive.from,
                tag: self.tag,
                // SAFETY: the memory belongs to this collective.
                bytes: unsafe { slice_mut(&receive.memory) },
            })
            .collect();
        transport.exchange(&sends, &mut receives)
    }

    /// Lays out the blocks and messages for operands of these sizes.
    pub(super) fn resize(&mut self, rank: usize, operands: &[View]) -> io::Result<()> {
        let mut room = Room {
            at: 0,
            base: std::ptr::null_mut(),
        };
        self.lay_out(rank, operands, &mut room);
        room.base = self.memory.grow(room.at)?;
        room.at = 0;
        self.lay_out(rank, operands, &mut room);
        Ok(())
    }

    fn lay_out(&mut self, rank: usize, operands: &[View], room: &mut Room) {
        self.views.clear();
        self.levels.clear();
        self.bases.clear();
        self.sums.clear();
        self.sends.clear();
        self.receives.clear();
        let needs = |of: usize| cut(&self.op, self.blocks.participants(of));
        let sliced = |view: View, of: usize| match needs(of) {
            Some(r) => view.sliced(r.axis, r.start, r.len),
            None => view,
        };
        for block in &self.blocks.blocks {
            let (from, n) = (block.first, 1 << block.level);
            let view = operands[from];
            let own = block.rank == rank;
            self.levels.push(block.level);
            self.bases.push(match needs(rank) {
                Some(r) if !own => r.start,
                _ => 0,
            });
            self.views.push(match (own, block.level) {
                (true, 0) => view,
                (true, _) => room.dense(view.dtype, view.ne),
                (false, _) => View::dense(std::ptr::null_mut(), view.dtype, sliced(view, rank).ne),
            });
            if own && block.level > 0 {
                let sum = self.views[self.views.len() - 1];
                self.sums.push((operands[from..from + n].to_vec(), sum));
            }
        }
        let blocks = &self.blocks.blocks;
        for other in self.blocks.others(rank) {
            let own = (blocks.iter().zip(&self.views)).filter(|(b, _)| b.rank == rank);
            let views: Vec<View> = own.map(|(_, v)| sliced(*v, other)).collect();
            let one = matches!(views.as_slice(), [view] if view.flat().is_some());
            let bytes = views.iter().map(bytes_of).sum();
            let memory = room.bytes(if one { 0 } else { bytes });
            self.sends.push(Send {
                to: other,
                views,
                memory,
            });
            let theirs = || (0..blocks.len()).filter(|&i| blocks[i].rank == other);
            let bytes = theirs().map(|i| bytes_of(&self.views[i])).sum();
            let memory = room.bytes(bytes);
            let mut at = memory.ptr;
            for i in theirs() {
                self.views[i].ptr = at;
                at = at.wrapping_add(bytes_of(&self.views[i]));
            }
            let from = other;
            self.receives.push(Receive { from, memory });
        }
    }
}

/// Returns the bytes of a message, in its memory or at its only view.
///
/// # Safety
/// The views are complete, and no other thread uses the message's memory.
unsafe fn packed<'a>(send: &Send) -> &'a [u8] {
    if let [view] = send.views.as_slice()
        && let Some(flat) = view.flat()
    {
        // SAFETY: caller's contract.
        return unsafe { slice(&flat) };
    }
    // SAFETY: caller's contract.
    let memory = unsafe { slice_mut(&send.memory) };
    let mut rest = &mut *memory;
    for view in &send.views {
        let (to, others) = rest.split_at_mut(bytes_of(view));
        pack(view, to);
        rest = others;
    }
    memory
}
