use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tpc_cuda::{
    Device, DeviceInfo, Driver, DriverError, Endpoint, Function, Graph, GraphSpec, Memory, Module,
    ModuleHandle, Side, Work,
};

/// Calls of a driver since the last [`Tally::take`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// The bytes of each copy to a device.
    pub writes: Vec<(Device, usize)>,
    /// The bytes of each copy from a device.
    pub reads: Vec<(Device, usize)>,
    /// The number of launched graphs.
    pub launches: usize,
    /// The number of waits for graphs.
    pub waits: usize,
}

/// The kernels of a graph and the order between devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GraphOrder {
    /// The number of kernels.
    pub kernels: usize,
    /// The number of edges between kernels of different devices.
    pub crossings: usize,
    /// The number of kernels that wait for a kernel of another device.
    pub joins: usize,
}

/// The counts of a [`CountingDriver`].
#[derive(Clone, Debug, Default)]
pub struct Tally(Arc<Mutex<(Calls, Vec<GraphOrder>)>>);

impl Tally {
    /// Returns the calls since the last call of this function.
    pub fn take(&self) -> Calls {
        std::mem::take(&mut self.counts().0)
    }

    /// Returns the instantiated graphs in order.
    pub fn graphs(&self) -> Vec<GraphOrder> {
        self.counts().1.clone()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, (Calls, Vec<GraphOrder>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A driver that counts copies, launches, waits and edges.
pub struct CountingDriver<D> {
    inner: D,
    tally: Tally,
    modules: BTreeMap<ModuleHandle, Device>,
    functions: BTreeMap<Function, Device>,
}

impl<D: Driver> CountingDriver<D> {
    /// Counts the calls of a driver.
    pub fn new(inner: D) -> (CountingDriver<D>, Tally) {
        let tally = Tally::default();
        let driver = CountingDriver {
            inner,
            tally: tally.clone(),
            modules: BTreeMap::new(),
            functions: BTreeMap::new(),
        };
        (driver, tally)
    }

    fn order(&self, spec: &GraphSpec) -> GraphOrder {
        let devices: Vec<Option<Device>> = spec
            .nodes
            .iter()
            .map(|node| match &node.work {
                Work::Kernel(kernel) => self.functions.get(&kernel.function).copied(),
                Work::Copy(_) | Work::Set(_) | Work::Host(_) | Work::Join => None,
            })
            .collect();
        let crossings: Vec<usize> = spec
            .edges
            .iter()
            .filter(|e| {
                let ends = devices[e.from].zip(devices[e.to]);
                ends.is_some_and(|(from, to)| from != to)
            })
            .map(|e| e.to)
            .collect();
        let mut joins = crossings.clone();
        joins.sort_unstable();
        joins.dedup();
        GraphOrder {
            kernels: devices.iter().flatten().count(),
            crossings: crossings.len(),
            joins: joins.len(),
        }
    }
}

impl<D: Driver> Driver for CountingDriver<D> {
    fn devices(&self) -> &[DeviceInfo] {
        self.inner.devices()
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.inner.free_memory(device)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        let handle = self.inner.load(device, module)?;
        self.modules.insert(handle, device);
        Ok(handle)
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        let function = self.inner.function(module, name)?;
        if let Some(device) = self.modules.get(&module) {
            self.functions.insert(function, *device);
        }
        Ok(function)
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        self.inner.allocate(device, bytes)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.inner.allocate_host(bytes)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        self.inner.free(memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.inner.grant(reader, owner)
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        if let Side::Device(device) = to.side {
            self.tally.counts().0.writes.push((device, bytes.len()));
        }
        self.inner.write(to, bytes)
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        if let Side::Device(device) = from.side {
            self.tally.counts().0.reads.push((device, bytes.len()));
        }
        self.inner.read(from, bytes)
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let order = self.order(&spec);
        let graph = self.inner.instantiate(spec)?;
        self.tally.counts().1.push(order);
        Ok(graph)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let order = self.order(&spec);
        let graph = self.inner.instantiate_timed(spec)?;
        self.tally.counts().1.push(order);
        Ok(graph)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.inner.node_times(graph)
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.inner.discard(graph)
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.tally.counts().0.launches += 1;
        self.inner.launch(graph)
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.tally.counts().0.waits += 1;
        self.inner.synchronize()
    }
}
