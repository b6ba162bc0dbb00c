//! The executors of programs, and what they are given.

use std::sync::Arc;

use tpc_core::placement::DeviceKind;
use tpc_cpu::{CpuExecutor, CpuOptions, CpuTarget};
use tpc_cuda::executor::PrebuiltCode;
use tpc_cuda::{
    CudaDriver, CudaExecutor, CudaOptions, CudaTarget, DeviceMap, Driver, DriverError, Edges,
};
use tpc_cuda_emulator::{Build, EmulatedDriver};
use tpc_ir::program::{Program, Target};
use tpc_runtime::{ExecError, Executor, WeightSource};

use crate::artefact;
use crate::devices::cards;

/// What executes the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorKind {
    /// Kernels on threads of the processor.
    Cpu,
    /// Kernels of CUDA on graphics cards.
    Cuda,
    /// Kernels of CUDA on devices that the processor emulates. It needs a C++ compiler.
    EmulatedCuda,
    /// Emulated CUDA that also checks bounds, devices and races of every access to memory.
    CheckedCuda,
    /// The interpreter, which computes in f64.
    Reference,
}

impl ExecutorKind {
    /// Returns the name that tables show.
    pub const fn name(self) -> &'static str {
        match self {
            ExecutorKind::Cpu => "CPU",
            ExecutorKind::Cuda => "CUDA",
            ExecutorKind::EmulatedCuda => "emulated CUDA",
            ExecutorKind::CheckedCuda => "checked CUDA",
            ExecutorKind::Reference => "reference",
        }
    }

    /// Returns how its devices store weights. The reference has no addresses: plans for it count as plans for the CPU do.
    pub const fn target(self) -> &'static dyn Target {
        match self {
            ExecutorKind::Cpu | ExecutorKind::Reference => &CpuTarget,
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                &CudaTarget
            }
        }
    }

    /// Returns the name of this executor in artefacts; `None` for the reference, which runs all artefacts.
    pub const fn in_artefacts(self) -> Option<&'static str> {
        match self {
            ExecutorKind::Reference => None,
            ExecutorKind::Cpu => Some(artefact::CPU),
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                Some(artefact::CUDA)
            }
        }
    }

    /// Returns whether its devices may be cards.
    pub const fn takes_cards(self) -> bool {
        match self {
            ExecutorKind::Cpu | ExecutorKind::Reference => false,
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => true,
        }
    }
}

/// The options of an executor.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorOptions {
    /// What executes the programs.
    pub kind: ExecutorKind,
    /// Threads of all devices together.
    pub threads: usize,
    /// How kernels of CUDA follow each other.
    pub edges: Edges,
    /// Whether kernels are timed.
    pub profile: bool,
}

impl ExecutorOptions {
    /// The options of an executor with one thread per usable core.
    pub fn new(kind: ExecutorKind, devices: usize) -> ExecutorOptions {
        ExecutorOptions {
            kind,
            threads: threads(crate::devices::cores::usable(), devices),
            edges: Edges::Programmatic,
            profile: false,
        }
    }

    /// Loads a program with its weights. The program was verified; `kernels` are compiled modules that an artefact brings.
    /// `devices` says what each device of the program is bound to.
    ///
    /// # Errors
    /// Returns an error if a card or the compiler of emulated devices is missing, if memory does not suffice, or if an op
    /// has no kernel. The reference loads graphs, and no programs: it returns an error, too.
    pub fn load(
        &self,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        devices: &[DeviceKind],
        kernels: &PrebuiltCode,
    ) -> Result<LoadedExecutor, ExecError> {
        match self.kind {
            ExecutorKind::Reference | ExecutorKind::Cpu => {
                let options = CpuOptions {
                    profile: self.profile,
                    ..CpuOptions::with_threads(self.threads)
                };
                let executor = CpuExecutor::new(program, weights, options)?;
                Ok(LoadedExecutor::without_cards(Box::new(executor)))
            }
            ExecutorKind::Cuda => {
                let driver = cards::real(devices);
                self.on_cards::<CudaDriver>(driver, program, weights, kernels)
            }
            ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                let driver = cards::emulated(devices, self.build());
                self.on_cards::<EmulatedDriver>(driver, program, weights, kernels)
            }
        }
    }

    /// Returns an error if a card is missing, or the compiler of emulated ones.
    ///
    /// # Errors
    /// The driver's error.
    pub fn probe(&self, devices: &[DeviceKind]) -> Result<(), ExecError> {
        let found = match self.kind {
            ExecutorKind::Cpu | ExecutorKind::Reference => Ok(()),
            ExecutorKind::Cuda => cards::real(devices).map(drop),
            ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                cards::emulated(devices, self.build()).map(drop)
            }
        };
        found.map_err(tpc_cuda::executor::error)
    }

    const fn build(&self) -> Build {
        match self.kind {
            ExecutorKind::CheckedCuda => Build::Checked,
            _ => Build::Plain,
        }
    }

    fn on_cards<D: Driver + 'static>(
        &self,
        driver: Result<DeviceMap<D>, DriverError>,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        kernels: &PrebuiltCode,
    ) -> Result<LoadedExecutor, ExecError> {
        let driver = driver.map_err(tpc_cuda::executor::error)?;
        let options = CudaOptions {
            edges: self.edges,
            ..CudaOptions::with_threads(self.threads)
        };
        let executor = CudaExecutor::with_code(program, weights, driver, options, kernels)?;
        let no_peer_access = executor.no_peer_access().to_vec();
        Ok(LoadedExecutor {
            executor: Box::new(executor),
            no_peer_access,
        })
    }
}

/// A program in an executor, with its weights.
pub struct LoadedExecutor {
    /// The executor.
    pub executor: Box<dyn Executor>,
    /// Pairs of cards, as (reader, owner), that do not reach each other's memory.
    pub no_peer_access: Vec<(u32, u32)>,
}

impl LoadedExecutor {
    fn without_cards(executor: Box<dyn Executor>) -> LoadedExecutor {
        LoadedExecutor {
            executor,
            no_peer_access: Vec::new(),
        }
    }
}

/// Divides threads among devices: as many for each, and one at least. Returns the threads of all devices together.
pub fn threads(all: usize, devices: usize) -> usize {
    let devices = devices.max(1);
    (all / devices).max(1) * devices
}
