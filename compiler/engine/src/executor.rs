use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tpc_core::placement::{DeviceKind, NumaNode};
use tpc_cpu::product::Isa;
use tpc_cpu::{CoreSets, CpuExecutor, CpuOptions, CpuTarget};
use tpc_cuda::executor::PrebuiltCode;
use tpc_cuda::{
    CudaDriver, CudaExecutor, CudaOptions, CudaTarget, DeviceMap, Driver, DriverError, Edges,
    LaunchMode, PeerFailure, WatchedDriver,
};
use tpc_cuda_emulator::{Build, EmulatedDriver, FailingDriver, PlantedLaunchFault};
use tpc_ir::program::{Program, Target};
use tpc_runtime::ranks::RankSeat;
use tpc_runtime::{ExecError, Executor, WeightSource};

use crate::artefact;
use crate::devices::{cards, numa};
use crate::ranks::RankGroup;

/// The kind of an executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutorKind {
    /// CPU kernels on a pool of threads.
    Cpu,
    /// CUDA kernels on graphics cards.
    Cuda,
    /// CUDA kernels on emulated devices. A C++ compiler is required.
    EmulatedCuda,
    /// Emulated CUDA with checks of memory accesses for bounds, device and races.
    CheckedCuda,
    /// The f64 interpreter.
    Reference,
}

impl ExecutorKind {
    /// Returns the name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            ExecutorKind::Cpu => "CPU",
            ExecutorKind::Cuda => "CUDA",
            ExecutorKind::EmulatedCuda => "emulated CUDA",
            ExecutorKind::CheckedCuda => "checked CUDA",
            ExecutorKind::Reference => "reference",
        }
    }

    /// Returns the kind with a name.
    pub(crate) fn named(name: &str) -> Option<ExecutorKind> {
        let all = [
            ExecutorKind::Cpu,
            ExecutorKind::Cuda,
            ExecutorKind::EmulatedCuda,
            ExecutorKind::CheckedCuda,
            ExecutorKind::Reference,
        ];
        all.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the target, which decides the storage of weights. The reference uses the CPU's target.
    pub const fn target(self) -> &'static dyn Target {
        match self {
            ExecutorKind::Cpu | ExecutorKind::Reference => &CpuTarget,
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                &CudaTarget
            }
        }
    }

    /// Returns the name in artefacts; `None` for the reference, which accepts all artefacts.
    pub const fn in_artefacts(self) -> Option<&'static str> {
        match self {
            ExecutorKind::Reference => None,
            ExecutorKind::Cpu => Some(artefact::CPU),
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                Some(artefact::CUDA)
            }
        }
    }

    /// True if devices may be cards.
    pub const fn takes_cards(self) -> bool {
        match self {
            ExecutorKind::Cpu | ExecutorKind::Reference => false,
            ExecutorKind::Cuda | ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => true,
        }
    }
}

/// Dumps of launches that fail. The executor waits for each launch, which is slow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpOnFault {
    /// The folder of the dumps.
    pub folder: PathBuf,
    /// The time limit of a launch.
    pub limit: Duration,
}

/// Options of an executor.
#[derive(Clone, Debug)]
pub struct ExecutorOptions {
    /// The kind of the executor.
    pub kind: ExecutorKind,
    /// Threads of all devices together.
    pub threads: usize,
    /// The instruction set of CPU kernels.
    pub isa: Isa,
    /// Dependencies between successive CUDA kernels.
    pub edges: Edges,
    /// True if kernels are timed.
    pub profile: bool,
    /// Dumps of failed launches, for CUDA executors.
    pub dump_on_fault: Option<DumpOnFault>,
    /// The planted fault of emulated devices, for tests.
    pub planted: Option<PlantedLaunchFault>,
    /// The processes that run the plan together; `None` for one process.
    pub ranks: Option<RankGroup>,
    /// The machine's NUMA nodes, for devices that are nodes; this machine's if `None`.
    pub nodes: Option<Vec<NumaNode>>,
}

impl ExecutorOptions {
    /// Returns options with one thread per usable core.
    pub fn new(kind: ExecutorKind, devices: usize) -> ExecutorOptions {
        ExecutorOptions {
            kind,
            threads: threads(crate::devices::cores::usable(), devices),
            isa: Isa::best(),
            edges: Edges::Programmatic,
            profile: false,
            dump_on_fault: None,
            planted: None,
            nodes: None,
            ranks: None,
        }
    }

    /// Returns the options of the CPU executor.
    pub fn cpu_options(&self) -> CpuOptions {
        CpuOptions {
            profile: self.profile,
            isa: self.isa,
            ..CpuOptions::with_threads(self.threads)
        }
    }

    /// Loads a verified program with its weights. `devices` are the kinds of the program's devices. `kernels` are
    /// compiled modules of an artefact.
    ///
    /// # Errors
    /// Returns an error if a card, a NUMA node or the C++ compiler is missing, memory is too small, or an op lacks a kernel. The
    /// reference runs graphs, so it refuses programs.
    pub fn load(
        &self,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        devices: &[DeviceKind],
        kernels: &PrebuiltCode,
    ) -> Result<LoadedExecutor, ExecError> {
        match &self.ranks {
            Some(group) => self.lead(group, program, weights, (devices, kernels)),
            None => self.load_share(program, weights, (devices, kernels), None),
        }
    }

    /// Loads a program as [`load`](Self::load), or the share of one rank.
    ///
    /// # Errors
    /// Returns the errors of [`load`](Self::load).
    pub(crate) fn load_share(
        &self,
        program: Arc<Program>,
        weights: &dyn WeightSource,
        (devices, kernels): (&[DeviceKind], &PrebuiltCode),
        seat: Option<RankSeat>,
    ) -> Result<LoadedExecutor, ExecError> {
        match self.kind {
            ExecutorKind::Reference => Err(ExecError::Malformed {
                what: "the reference executor runs graphs, not programs".to_owned(),
            }),
            ExecutorKind::Cpu => {
                // MPI binds the threads of ranks to cores.
                let cores = match &seat {
                    Some(_) => CoreSets::default(),
                    None => numa::core_sets(devices, self.nodes.as_deref()).map_err(|d| {
                        ExecError::Parameter {
                            what: d.message.to_string(),
                        }
                    })?,
                };
                let options = self.cpu_options();
                let executor = CpuExecutor::on_rank(program, weights, options, (&cores, seat))?;
                Ok(LoadedExecutor {
                    executor: Box::new(executor),
                    no_peer_access: Vec::new(),
                })
            }
            ExecutorKind::Cuda => {
                let driver = cards::real(devices);
                self.on_cards::<CudaDriver>(driver, program, weights, (kernels, seat))
            }
            ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                let driver = cards::emulated(devices, self.build(), self.planted);
                let code = (kernels, seat);
                self.on_cards::<FailingDriver<EmulatedDriver>>(driver, program, weights, code)
            }
        }
    }

    /// Checks that the cards, or the C++ compiler for emulated cards, are present.
    ///
    /// # Errors
    /// Returns the driver's error if one is missing.
    pub fn probe(&self, devices: &[DeviceKind]) -> Result<(), ExecError> {
        let found = match self.kind {
            ExecutorKind::Cpu | ExecutorKind::Reference => Ok(()),
            ExecutorKind::Cuda => cards::real(devices).map(drop),
            ExecutorKind::EmulatedCuda | ExecutorKind::CheckedCuda => {
                cards::emulated(devices, self.build(), None).map(drop)
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
        code: (&PrebuiltCode, Option<RankSeat>),
    ) -> Result<LoadedExecutor, ExecError> {
        let driver = driver.map_err(tpc_cuda::executor::error)?;
        let options = CudaOptions {
            edges: self.edges,
            mode: match self.profile {
                true => LaunchMode::Timed,
                false => LaunchMode::Whole,
            },
            ..CudaOptions::with_threads(self.threads)
        };
        let Some(DumpOnFault { folder, limit }) = &self.dump_on_fault else {
            let executor = CudaExecutor::on_rank(program, weights, driver, options, code)?;
            return Ok(LoadedExecutor::on_cards(executor));
        };
        let driver = WatchedDriver::new(driver, *limit);
        let options = CudaOptions {
            mode: LaunchMode::Stepped,
            ..options
        };
        let executor = CudaExecutor::on_rank(program, weights, driver, options, code)?;
        let executor = executor.with_dump_folder(folder.clone());
        Ok(LoadedExecutor::on_cards(executor))
    }
}

/// An executor with a loaded program.
pub struct LoadedExecutor {
    /// The executor.
    pub executor: Box<dyn Executor>,
    /// Pairs of cards (reader, owner) without peer access.
    pub no_peer_access: Vec<((u32, u32), PeerFailure)>,
}

impl LoadedExecutor {
    fn on_cards<D: Driver + 'static>(executor: CudaExecutor<D>) -> LoadedExecutor {
        let no_peer_access = executor.no_peer_access().to_vec();
        LoadedExecutor {
            executor: Box::new(executor),
            no_peer_access,
        }
    }
}

/// Divides threads equally among devices, at least one per device. Returns the total.
pub fn threads(all: usize, devices: usize) -> usize {
    let devices = devices.max(1);
    (all / devices).max(1) * devices
}
