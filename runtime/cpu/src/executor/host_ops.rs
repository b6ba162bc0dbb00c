//! Ops that run on the host for other executors.
#![allow(unsafe_code)]

use tpc_ir::op::Op;
use tpc_ir::program::Program;
use tpc_ir::{Arena, Bindings, TensorType, Value};
use tpc_runtime::{ExecError, PackedWeight, WeightSource};

use super::launches::Launches;
use super::product::DeviceScratch;
use super::rank_exchange::RankExchange;
use super::{CpuOptions, Own, load, perform};
use crate::error::KernelError;
use crate::product::Isa;
use crate::team::Team;
use crate::view::View;

/// Ops that other executors run on host threads. Host weights are stored in the format of
/// [`CpuTarget`](crate::CpuTarget).
#[derive(Debug)]
pub struct HostOps {
    team: Team,
    isa: Isa,
    launches: Launches,
    shared: DeviceScratch,
    own: Vec<Own>,
}

impl HostOps {
    /// Selects the ops' kernels. The program's host arenas begin at `first_byte`.
    ///
    /// # Errors
    /// Returns an error if an op has no kernel, a size is not bound, memory runs out, or a thread cannot start.
    pub fn new(
        program: &Program,
        ops: &[(Op, Vec<Value>, Vec<Value>)],
        first_byte: &dyn Fn(Arena) -> *mut u8,
        options: CpuOptions,
    ) -> Result<HostOps, ExecError> {
        let team = Team::new(options.threads.max(1)).map_err(|e| ExecError::Parameter {
            what: e.to_string(),
        })?;
        let launches = Launches::of_ops(program, first_byte, options, ops)?;
        let shared = DeviceScratch::new(&launches.needs).map_err(|e| ExecError::Size {
            what: format!("of the host's activations ({e})"),
        })?;
        Ok(HostOps {
            own: (0..team.workers()).map(|_| launches.own()).collect(),
            isa: Isa::best(),
            team,
            launches,
            shared,
        })
    }

    /// Sets the sizes of the next batches.
    ///
    /// # Errors
    /// Returns an error if a size is not bound or an op does not accept it.
    pub fn resize(&mut self, sizes: &Bindings) -> Result<(), ExecError> {
        let mut ops = self.launches.prepared.iter_mut();
        ops.try_for_each(|op| op.resize(sizes))
    }

    /// Runs op `op`. `views` contains the operands, then the results.
    ///
    /// # Errors
    /// Returns the error of [`Kernel::run`](crate::Kernel::run).
    ///
    /// # Safety
    /// Same as [`Kernel::run`](crate::Kernel::run).
    pub unsafe fn run(&mut self, op: usize, views: &[View]) -> Result<(), KernelError> {
        let HostOps {
            team,
            isa,
            launches,
            shared,
            own,
        } = self;
        let op = &launches.prepared[op];
        if views.len() < op.operands + op.results {
            return Err(KernelError::Shape {
                what: "wrong number of views of a host op",
            });
        }
        let (isa, shared, own) = (*isa, &*shared, &*own);
        team.run(|worker| {
            // SAFETY: each worker uses only the memory with its number.
            let own = unsafe { &mut *own[worker.number()].0.get() };
            // SAFETY: caller's contract; one op runs at a time.
            unsafe { perform(worker, isa, (op, 0), views, shared, own) }
        })
    }

    /// Computes this rank's blocks of a collective.
    ///
    /// # Errors
    /// Returns an error if the operands do not match the collective.
    ///
    /// # Safety
    /// The operands of this rank are written, and no other thread uses the collective.
    pub unsafe fn add_blocks(&mut self, of: &RankExchange) -> Result<(), KernelError> {
        // SAFETY: caller's contract.
        self.team.run(|worker| unsafe { of.add(worker) })
    }

    /// Computes the results of a collective.
    ///
    /// # Errors
    /// Returns an error if the results do not match the collective.
    ///
    /// # Safety
    /// The [exchange](RankExchange::exchange) has returned, and no other thread uses the collective or its results.
    pub unsafe fn results(&mut self, of: &RankExchange) -> Result<(), KernelError> {
        // SAFETY: caller's contract.
        self.team.run(|worker| unsafe { of.finish(worker) })
    }

    /// Packs a weight of this type into panels.
    ///
    /// # Errors
    /// Returns an error if the weight does not match its type, or the memory has the wrong size.
    pub fn pack(
        &mut self,
        part: PackedWeight<'_>,
        ty: &TensorType,
        to: &mut [u8],
        source: &dyn WeightSource,
    ) -> Result<(), ExecError> {
        load::rows16(part, ty, to, source, &mut self.team)
    }
}
