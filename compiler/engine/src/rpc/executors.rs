use std::sync::Arc;

use tpc_core::placement::{DeviceKind, Placement};
use tpc_cuda::executor::PrebuiltCode;
use tpc_ir::program::Program;
use tpc_runtime::{ExecError, Executor, WeightSource};

use crate::error::Error;
use crate::executor::ExecutorOptions;

/// Executor options and devices of a server.
#[derive(Clone, Debug)]
pub struct Executors {
    options: ExecutorOptions,
    devices: Vec<DeviceKind>,
}

impl Executors {
    /// Selects executor and devices, and checks that they are present.
    ///
    /// # Errors
    /// Returns an error if a card, or the C++ compiler for emulated cards, is missing.
    pub fn new(options: ExecutorOptions, placement: &Placement) -> Result<Executors, Error> {
        let devices: Vec<DeviceKind> = placement.devices.iter().map(|d| d.kind).collect();
        options.probe(&devices)?;
        Ok(Executors { options, devices })
    }

    /// Loads a verified program with its weights.
    ///
    /// # Errors
    /// Returns the executor's error.
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
