//! Replays a launch of a dump on cards or emulated devices.

use std::time::Duration;

use tpc_core::placement::DeviceKind;
use tpc_cuda::dump::LaunchDump;
use tpc_cuda::replay::{Replayed, replay};
use tpc_cuda::{Driver, DriverError, WatchedDriver};
use tpc_cuda_emulator::{
    Build, EmulatedDriver, EmulatedOptions, FailingDriver, PlantedLaunchFault,
};
use tpc_runtime::ExecError;

use crate::devices::{cards, host_memory};
use crate::executor::ExecutorKind;

/// The device that replays a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayDevice {
    /// The kind: cards or emulated devices.
    pub kind: ExecutorKind,
    /// The number of the card.
    pub card: u32,
    /// The time limit of the launch.
    pub limit: Duration,
    /// The planted fault of an emulated device, for tests.
    pub planted: Option<PlantedLaunchFault>,
}

/// The memory of an emulated device, if the host's memory is unknown.
const MEMORY: u64 = 4 << 30;

impl ReplayDevice {
    /// Runs the launch alone.
    ///
    /// # Errors
    /// Returns the error of the launch with its names; an index out of range is such an error. Returns the driver's
    /// error if the launch cannot start.
    pub fn replay(self, dump: &LaunchDump) -> Result<Replayed, ExecError> {
        let replayed = match self.kind {
            ExecutorKind::Cuda => self.watched(cards::real(&[DeviceKind::Cuda(self.card)]), dump),
            _ => self.watched(self.emulated(dump), dump),
        };
        let named = |e: ExecError| e.at(|| dump.header.launch.to_string());
        let replayed = replayed.map_err(|e| named(tpc_cuda::executor::error(e)))?;
        match replayed.fault {
            Some((index, bound)) => Err(named(ExecError::Index {
                what: "index",
                index,
                bound: usize::try_from(bound).unwrap_or(usize::MAX),
            })),
            None => Ok(replayed),
        }
    }

    fn emulated(self, dump: &LaunchDump) -> Result<FailingDriver<EmulatedDriver>, DriverError> {
        let driver = EmulatedDriver::new(EmulatedOptions {
            memory: host_memory::available().unwrap_or(MEMORY),
            capability: dump.header.device.capability,
            build: match self.kind {
                ExecutorKind::CheckedCuda => Build::Checked,
                _ => Build::Plain,
            },
            ..EmulatedOptions::default()
        })?;
        Ok(FailingDriver::new(driver, self.planted))
    }

    fn watched<D: Driver + 'static>(
        self,
        driver: Result<D, DriverError>,
        dump: &LaunchDump,
    ) -> Result<Replayed, DriverError> {
        replay(dump, &mut WatchedDriver::new(driver?, self.limit))
    }
}
