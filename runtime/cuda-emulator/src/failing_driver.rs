//! A driver on which one launch fails, for tests of `--dump-on-fault`.

use std::collections::BTreeSet;
use std::thread;
use std::time::Duration;

use tpc_cuda::{
    Device, DeviceFailure, DeviceInfo, Driver, DriverError, Endpoint, Function, Graph, GraphSpec,
    Memory, Module, ModuleHandle, Work,
};

/// The way in which a launch fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchFault {
    /// The kernel accesses an illegal address. The device then refuses all calls, as a card does.
    IllegalAddress,
    /// The device is lost, and refuses all calls.
    DeviceLost,
    /// The launch never ends.
    Hang,
}

impl LaunchFault {
    /// All faults.
    pub const ALL: [LaunchFault; 3] = [
        LaunchFault::IllegalAddress,
        LaunchFault::DeviceLost,
        LaunchFault::Hang,
    ];

    /// Returns the name, such as `illegal-address`.
    pub const fn name(self) -> &'static str {
        match self {
            LaunchFault::IllegalAddress => "illegal-address",
            LaunchFault::DeviceLost => "device-lost",
            LaunchFault::Hang => "hang",
        }
    }
}

/// A fault of the launch with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlantedLaunchFault {
    /// The fault.
    pub fault: LaunchFault,
    /// The number of the launch in its program.
    pub launch: u32,
}

impl PlantedLaunchFault {
    /// Parses a fault and a launch, such as `illegal-address@17`.
    pub fn from_name(text: &str) -> Option<PlantedLaunchFault> {
        let (name, launch) = text.split_once('@')?;
        let fault = LaunchFault::ALL.into_iter().find(|f| f.name() == name)?;
        let launch = launch.parse().ok()?;
        Some(PlantedLaunchFault { fault, launch })
    }
}

/// A driver that passes all calls to `D`, until the launch with the fault.
pub struct FailingDriver<D: Driver> {
    inner: D,
    planted: Option<PlantedLaunchFault>,
    /// The graphs with the launch.
    graphs: BTreeSet<Graph>,
    failed: Option<DeviceFailure>,
}

impl<D: Driver> FailingDriver<D> {
    /// Returns a driver with this fault; without a fault, all calls pass unchanged.
    pub fn new(inner: D, planted: Option<PlantedLaunchFault>) -> FailingDriver<D> {
        FailingDriver {
            inner,
            planted,
            graphs: BTreeSet::new(),
            failed: None,
        }
    }

    /// Returns the driver if the device still works. The errors of a failed device are those of CUDA.
    fn working(&mut self, what: &str) -> Result<&mut D, DriverError> {
        let Some(failure) = self.failed else {
            return Ok(&mut self.inner);
        };
        let name = match failure {
            DeviceFailure::IllegalAddress => "CUDA_ERROR_ILLEGAL_ADDRESS",
            _ => "CUDA_ERROR_UNKNOWN",
        };
        Err(DriverError::Failed {
            what: what.to_owned(),
            failure,
            name: name.to_owned(),
        })
    }

    /// True if a graph launches the kernel with the fault. The last argument of a kernel is the launch.
    fn has_fault(&self, spec: &GraphSpec) -> bool {
        let number = |work: &Work| match work {
            Work::Kernel(kernel) => {
                let last = kernel.args.iter().last()?;
                last.try_into().ok().map(u32::from_ne_bytes)
            }
            _ => None,
        };
        let planted = self.planted.map(|p| p.launch);
        let mut numbers = spec.nodes.iter().filter_map(|n| number(&n.work));
        planted.is_some_and(|launch| numbers.any(|n| n == launch))
    }
}

impl<D: Driver> Driver for FailingDriver<D> {
    fn devices(&self) -> &[DeviceInfo] {
        self.inner.devices()
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.inner.free_memory(device)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        self.working("loading a module")?.load(device, module)
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        self.working("looking up a kernel")?.function(module, name)
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        self.working("allocating memory")?.allocate(device, bytes)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.working("allocating host memory")?.allocate_host(bytes)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        self.inner.free(memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.working("querying peer access")?.grant(reader, owner)
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        self.working("copying to a device")?.write(to, bytes)
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.working("copying from a device")?.read(from, bytes)
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let has_fault = self.has_fault(&spec);
        let graph = self.working("creating a graph")?.instantiate(spec)?;
        if has_fault {
            self.graphs.insert(graph);
        }
        Ok(graph)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let has_fault = self.has_fault(&spec);
        let graph = self.working("creating a graph")?.instantiate_timed(spec)?;
        if has_fault {
            self.graphs.insert(graph);
        }
        Ok(graph)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.working("running a graph")?.node_times(graph)
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.graphs.remove(&graph);
        self.working("running a graph")?.discard(graph)
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        let planted = self.planted.filter(|_| self.graphs.contains(&graph));
        let Some(planted) = planted else {
            return self.working("launching a graph")?.launch(graph);
        };
        match planted.fault {
            LaunchFault::Hang => loop {
                thread::park();
            },
            LaunchFault::IllegalAddress => self.failed = Some(DeviceFailure::IllegalAddress),
            LaunchFault::DeviceLost => self.failed = Some(DeviceFailure::Lost),
        }
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.working("running a graph")?.synchronize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_a_launch() {
        for fault in LaunchFault::ALL {
            let found = PlantedLaunchFault::from_name(&format!("{}@17", fault.name()));
            assert_eq!(found, Some(PlantedLaunchFault { fault, launch: 17 }));
        }
        for wrong in ["hang", "hang@", "hang@-1", "hang@x", "slow@1", ""] {
            assert_eq!(PlantedLaunchFault::from_name(wrong), None, "{wrong}");
        }
    }
}
