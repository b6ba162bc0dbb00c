//! What runs the programs of a connection: threads of the processor, or cards.

use std::sync::Arc;

use tpc_core::placement::{DeviceKind, Placement};
use tpc_cpu::{CpuExecutor, CpuOptions};
use tpc_cuda::{CudaExecutor, CudaOptions, DeviceMap, Driver, DriverError};
use tpc_cuda_emulator::Build;
use tpc_ir::program::Program;
use tpc_runtime::{ExecError, Executor, WeightSource};

use crate::engine::{EngineArgs, ExecutorKind, cards, execution_failure};
use crate::output::Failure;

/// The executor that a server's programs run on.
#[derive(Clone, Debug)]
pub(in crate::rpc) struct Engines {
    kind: ExecutorKind,
    kinds: Vec<DeviceKind>,
    threads: usize,
    options: EngineArgs,
}

impl Engines {
    /// That of the options, with threads for the devices of a placement.
    ///
    /// # Errors
    /// TPC0400 for a list of threads of another length; where a card is missing, or the compiler of emulated ones.
    pub(in crate::rpc) fn new(
        kind: ExecutorKind,
        placement: &Placement,
        options: &EngineArgs,
    ) -> Result<Engines, Failure> {
        let kinds: Vec<DeviceKind> = placement.devices.iter().map(|d| d.kind).collect();
        let there = match kind {
            ExecutorKind::Cpu | ExecutorKind::Reference => Ok(()),
            ExecutorKind::Cuda => cards::real(&kinds).map(drop),
            ExecutorKind::EmulatedCuda => cards::emulated(&kinds, Build::Plain).map(drop),
            ExecutorKind::CheckedCuda => cards::emulated(&kinds, Build::Checked).map(drop),
        };
        there.map_err(|e| execution_failure(&tpc_cuda::executor::error(e)))?;
        Ok(Engines {
            kind,
            kinds,
            threads: options.threads(placement.devices.len())?,
            options: options.clone(),
        })
    }

    /// An executor of a program that the verifier accepts, with its weights loaded.
    ///
    /// # Errors
    /// Those of the executor.
    pub(super) fn load(
        &self,
        program: Program,
        weights: &dyn WeightSource,
    ) -> Result<Box<dyn Executor>, ExecError> {
        let program = Arc::new(program);
        match self.kind {
            ExecutorKind::Cpu | ExecutorKind::Reference => {
                let options = CpuOptions::with_threads(self.threads);
                Ok(Box::new(CpuExecutor::new(program, weights, options)?))
            }
            ExecutorKind::Cuda => self.on_cards(cards::real(&self.kinds), program, weights),
            ExecutorKind::EmulatedCuda => {
                let driver = cards::emulated(&self.kinds, Build::Plain);
                self.on_cards(driver, program, weights)
            }
            ExecutorKind::CheckedCuda => {
                let driver = cards::emulated(&self.kinds, Build::Checked);
                self.on_cards(driver, program, weights)
            }
        }
    }

    fn on_cards<D: Driver + 'static>(
        &self,
        driver: Result<DeviceMap<D>, DriverError>,
        program: Arc<Program>,
        weights: &dyn WeightSource,
    ) -> Result<Box<dyn Executor>, ExecError> {
        let driver = driver.map_err(tpc_cuda::executor::error)?;
        let options = CudaOptions {
            edges: self.options.edges(),
            ..CudaOptions::with_threads(self.threads)
        };
        let executor = CudaExecutor::new(program, weights, driver, options)?;
        Ok(Box::new(executor))
    }
}
