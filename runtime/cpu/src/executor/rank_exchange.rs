//! Collectives among ranks for executors of other devices, which copy their operands to host memory.
#![allow(unsafe_code)]

use tpc_ir::{DType, Op};
use tpc_runtime::ranks::{Blocks, RankError, Tag, Transport};
use tpc_runtime::{ExecError, Options};

use super::collective::Exchange;
use super::joint::Joint;
use super::launches::select;
use crate::error::KernelError;
use crate::view::View;
use crate::worker::Worker;

/// A collective with participants on other ranks, whose operands and results are in host memory.
#[derive(Debug)]
pub struct RankExchange {
    rank: usize,
    joint: Joint,
    exchange: Exchange,
    /// The results of this rank's participants.
    results: Vec<(usize, View)>,
}

fn no_memory(e: &std::io::Error) -> ExecError {
    ExecError::Size {
        what: format!("of the blocks of a collective ({e})"),
    }
}

impl RankExchange {
    /// Prepares a collective on tensors of type `dtype`. `rank` is this rank, and `tag` the tag of the messages.
    ///
    /// # Errors
    /// Returns an error if the CPU cannot copy the type.
    pub fn new(
        (op, dtype): (&Op, DType),
        (blocks, rank, tag): (Blocks, usize, Tag),
        options: Options,
    ) -> Result<RankExchange, ExecError> {
        let copy = select(&Op::Copy(tpc_ir::op::Copy), &[dtype], &[dtype], options)?;
        let joint = Joint::new(op.clone(), blocks, tag);
        Ok(RankExchange {
            rank,
            joint: joint.map_err(|e| no_memory(&e))?,
            exchange: Exchange::new(op, copy),
            results: Vec::new(),
        })
    }

    /// Sets the tensors of the next batches: the operands of all participants, and this rank's results with their
    /// participants. The addresses of other ranks' operands are not used.
    ///
    /// # Errors
    /// Returns an error if memory runs out.
    pub fn resize(
        &mut self,
        operands: &[View],
        results: Vec<(usize, View)>,
    ) -> Result<(), ExecError> {
        self.results = results;
        let resized = self.joint.resize(self.rank, operands);
        resized.map_err(|e| no_memory(&e))
    }

    /// Sends this rank's blocks to the other ranks, and receives theirs.
    ///
    /// # Errors
    /// Returns an error if a rank fails.
    ///
    /// # Safety
    /// [`HostOps::add_blocks`](super::host_ops::HostOps::add_blocks) has returned, and no other thread uses this
    /// collective.
    pub unsafe fn exchange(&self, transport: &dyn Transport) -> Result<(), RankError> {
        // SAFETY: caller's contract.
        unsafe { self.joint.exchange(transport) }
    }

    /// Computes the worker's share of this rank's blocks.
    ///
    /// # Safety
    /// The operands of this rank are written.
    pub(super) unsafe fn add(&self, worker: &Worker<'_>) -> Result<(), KernelError> {
        // SAFETY: caller's contract.
        unsafe { self.joint.add(worker) }
    }

    /// Computes the worker's share of the results.
    ///
    /// # Safety
    /// The blocks of all ranks have arrived, and no other thread uses the results.
    pub(super) unsafe fn finish(&self, worker: &Worker<'_>) -> Result<(), KernelError> {
        for (participant, result) in &self.results {
            let parts = self.joint.parts();
            // SAFETY: caller's contract.
            unsafe { (self.exchange).run(worker, *participant, parts, result, &mut [])? };
        }
        Ok(())
    }
}
