//! A driver with one planted fault, for tests of `tpc doctor`.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use tpc_cuda::{
    CopyNode, Device, DeviceInfo, Driver, DriverError, Endpoint, Function, Graph, GraphSpec,
    Memory, Module, ModuleHandle, Node, Side, Work,
};

/// A fault that a [`FaultyDriver`] injects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlantedFault {
    /// Graph copies between devices change a byte.
    WrongPeerData,
    /// Large graph copies between devices take a quarter of a second longer.
    SlowLink,
    /// Graphs with a copy between devices never end.
    HangingCopy,
    /// After a graph with kernels, numbers in host memory have other signs.
    WrongKernel,
    /// Kernels of norms compute wrong square roots.
    WrongNorm,
    /// Writes of the host overtake launched graphs.
    UnorderedWrites,
    /// Modules lack their kernels.
    MissingSymbol,
    /// Every allocation on a device fails.
    OutOfMemory,
}

impl PlantedFault {
    /// All faults.
    pub const ALL: [PlantedFault; 8] = [
        PlantedFault::WrongPeerData,
        PlantedFault::SlowLink,
        PlantedFault::HangingCopy,
        PlantedFault::WrongKernel,
        PlantedFault::WrongNorm,
        PlantedFault::UnorderedWrites,
        PlantedFault::MissingSymbol,
        PlantedFault::OutOfMemory,
    ];

    /// Returns the name, such as `slow-link`.
    pub const fn name(self) -> &'static str {
        match self {
            PlantedFault::WrongPeerData => "wrong-peer-data",
            PlantedFault::SlowLink => "slow-link",
            PlantedFault::HangingCopy => "hanging-copy",
            PlantedFault::WrongKernel => "wrong-kernel",
            PlantedFault::WrongNorm => "wrong-norm",
            PlantedFault::UnorderedWrites => "unordered-writes",
            PlantedFault::MissingSymbol => "missing-symbol",
            PlantedFault::OutOfMemory => "out-of-memory",
        }
    }

    /// Returns the fault with this name.
    pub fn from_name(name: &str) -> Option<PlantedFault> {
        PlantedFault::ALL.into_iter().find(|f| f.name() == name)
    }
}

/// The minimum size of a copy on a slow link.
const LARGE: u64 = 1 << 20;
/// The delay of a copy on a slow link.
const DELAY: Duration = Duration::from_millis(250);

/// A driver that passes all calls to `D`, and injects at most one fault.
pub struct FaultyDriver<D: Driver> {
    inner: D,
    fault: Option<PlantedFault>,
    /// The copies between devices of each graph.
    peer_copies: BTreeMap<Graph, Vec<CopyNode>>,
    /// The graphs with kernels.
    with_kernels: BTreeSet<Graph>,
    /// The allocations in host memory.
    host: Vec<Memory>,
    /// Graphs launched since the last [`Driver::synchronize`].
    launched: BTreeSet<Graph>,
    /// Graphs that start at the next wait, because writes overtake them.
    delayed: Vec<Graph>,
}

impl<D: Driver> FaultyDriver<D> {
    /// Returns a driver with this fault; without a fault, all calls pass unchanged.
    pub fn new(inner: D, fault: Option<PlantedFault>) -> FaultyDriver<D> {
        FaultyDriver {
            inner,
            fault,
            peer_copies: BTreeMap::new(),
            with_kernels: BTreeSet::new(),
            host: Vec::new(),
            launched: BTreeSet::new(),
            delayed: Vec::new(),
        }
    }

    fn has(&self, fault: PlantedFault) -> bool {
        self.fault == Some(fault)
    }

    fn is_peer_copy(copy: &CopyNode) -> bool {
        match (copy.from.side, copy.to.side) {
            (Side::Device(a), Side::Device(b)) => a != b,
            _ => false,
        }
    }

    /// Starts the delayed graphs.
    fn start_delayed(&mut self) -> Result<(), DriverError> {
        for graph in std::mem::take(&mut self.delayed) {
            self.inner.launch(graph)?;
        }
        Ok(())
    }

    /// Changes the sign of every 16th number in host memory, which has the results of kernels.
    fn change_results(&mut self) -> Result<(), DriverError> {
        for memory in &self.host {
            let at = Endpoint {
                side: memory.side,
                address: memory.address,
            };
            let mut bytes = vec![0; usize::try_from(memory.bytes).unwrap_or(0)];
            self.inner.read(at, &mut bytes)?;
            bytes
                .iter_mut()
                .skip(3)
                .step_by(64)
                .for_each(|b| *b ^= 0x80);
            self.inner.write(at, &bytes)?;
        }
        Ok(())
    }

    /// Flips a bit in the middle of the destinations of copies between devices.
    fn change_copies(&mut self) -> Result<(), DriverError> {
        let graphs = self.launched.iter().filter_map(|g| self.peer_copies.get(g));
        let copies: Vec<CopyNode> = graphs.flatten().copied().collect();
        for copy in copies.iter().filter(|c| c.bytes > 0) {
            let at = Endpoint {
                address: copy.to.address + copy.bytes / 2,
                ..copy.to
            };
            let mut byte = [0];
            self.inner.read(at, &mut byte)?;
            self.inner.write(at, &[byte[0] ^ 0x10])?;
        }
        Ok(())
    }
}

/// Returns a module whose square roots are a fifth too large.
fn with_wrong_roots(module: &Module) -> Module {
    let wrong = |source: &str| format!("#define sqrtf(x) (1.2f * sqrtf(x))\n{source}").into();
    let sources = module.kernel_sources.iter();
    Module {
        name: module.name.clone(),
        source: wrong(&module.source),
        kernel_sources: sources.map(|(k, s)| (k.clone(), wrong(s))).collect(),
        cubins: Vec::new(),
    }
}

impl<D: Driver> Driver for FaultyDriver<D> {
    fn devices(&self) -> &[DeviceInfo] {
        self.inner.devices()
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.inner.free_memory(device)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        if self.has(PlantedFault::WrongNorm) && module.name == "norm" {
            return self.inner.load(device, &with_wrong_roots(module));
        }
        self.inner.load(device, module)
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        if self.has(PlantedFault::MissingSymbol) {
            return Err(DriverError::NoFunction {
                module: module.to_string(),
                name: name.to_owned(),
            });
        }
        self.inner.function(module, name)
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        if self.has(PlantedFault::OutOfMemory) {
            return Err(DriverError::OutOfMemory {
                place: device.to_string(),
                needed: bytes,
                free: 0,
            });
        }
        self.inner.allocate(device, bytes)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        let memory = self.inner.allocate_host(bytes)?;
        self.host.push(memory);
        Ok(memory)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        self.host.retain(|m| *m != memory);
        self.inner.free(memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.inner.grant(reader, owner)
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        self.inner.write(to, bytes)
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.start_delayed()?;
        self.inner.read(from, bytes)
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let is_kernel = |n: &Node| matches!(n.work, Work::Kernel(_));
        let has_kernels = spec.nodes.iter().any(is_kernel);
        let mut peer_copies = Vec::new();
        for node in &spec.nodes {
            if let Work::Copy(copy) = &node.work
                && Self::is_peer_copy(copy)
            {
                peer_copies.push(*copy);
            }
        }
        let graph = self.inner.instantiate(spec)?;
        self.peer_copies.insert(graph, peer_copies);
        if has_kernels {
            self.with_kernels.insert(graph);
        }
        Ok(graph)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        self.inner.instantiate_timed(spec)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.start_delayed()?;
        self.inner.node_times(graph)
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.start_delayed()?;
        self.peer_copies.remove(&graph);
        self.inner.discard(graph)
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        if let Some(copies) = self.peer_copies.get(&graph) {
            let large = copies.iter().filter(|c| c.bytes >= LARGE).count();
            match self.fault {
                Some(PlantedFault::SlowLink) => thread::sleep(DELAY * large as u32),
                Some(PlantedFault::HangingCopy) if !copies.is_empty() => loop {
                    thread::park();
                },
                _ => {}
            }
            self.launched.insert(graph);
        }
        if self.has(PlantedFault::UnorderedWrites) {
            self.delayed.push(graph);
            return Ok(());
        }
        self.inner.launch(graph)
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.start_delayed()?;
        self.inner.synchronize()?;
        let has_kernels = self.launched.iter().any(|g| self.with_kernels.contains(g));
        match self.fault {
            Some(PlantedFault::WrongPeerData) => self.change_copies()?,
            Some(PlantedFault::WrongKernel) if has_kernels => self.change_results()?,
            _ => {}
        }
        self.launched.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_have_names() {
        for fault in PlantedFault::ALL {
            assert_eq!(PlantedFault::from_name(fault.name()), Some(fault));
        }
        assert_eq!(PlantedFault::from_name("none"), None);
    }
}
