//! The executor of a connection's programs: threads of the processor, or cards.

use std::sync::Arc;

use tpc_core::placement::{DeviceKind, Placement};
use tpc_cuda::executor::PrebuiltCode;
use tpc_ir::program::Program;
use tpc_runtime::{ExecError, Executor, WeightSource};

use crate::error::Error;
use crate::executor::ExecutorOptions;

/// The executor that a server's programs run on.
#[derive(Clone, Debug)]
pub struct Executors {
    options: ExecutorOptions,
    devices: Vec<DeviceKind>,
}

impl Executors {
    /// Binds the executor of the options to the devices of a placement.
    ///
    /// # Errors
    /// Returns an error if a card is missing, or the compiler of emulated ones.
    pub fn new(options: ExecutorOptions, placement: &Placement) -> Result<Executors, Error> {
        let devices: Vec<DeviceKind> = placement.devices.iter().map(|d| d.kind).collect();
        options.probe(&devices)?;
        Ok(Executors { options, devices })
    }

    /// Loads a program that the verifier accepts, with its weights.
    ///
    /// # Errors
    /// Returns the error of the executor.
    pub(super) fn load(
        &self,
        program: Program,
        weights: &dyn WeightSource,
    ) -> Result<Box<dyn Executor>, ExecError> {
        let (program, kernels) = (Arc::new(program), PrebuiltCode::default());
        let loaded = (self.options).load(program, weights, &self.devices, &kernels)?;
        Ok(loaded.executor)
    }
}
