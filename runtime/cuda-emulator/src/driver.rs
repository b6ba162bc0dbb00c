use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tpc_cuda::{
    Device, DeviceInfo, Driver, DriverError, EdgeKind, Endpoint, Fault, Function, Graph, GraphSpec,
    KernelNode, Memory, Module, ModuleHandle, PeerFailure, Side, Work, cache_dir,
};

use super::access_checker::AccessChecker;
use super::calls::CALLS;
use super::compiler::{Build, Compiler};
use super::fault::{CodeLocation, UnresolvedFault};
use super::graph::{GraphInstance, GraphNode, Launch, Task};
use super::image::Image;
use super::memory::Memories;
use super::options::{EmulatedOptions, Links};
use super::race::{RaceDetector, Reachability};
use super::run_state::RunState;
use super::scheduler::StopReason;

struct LoadedModule {
    device: Device,
    module: Module,
    module_image: Option<Arc<Image>>,
    kernel_images: BTreeMap<String, Arc<Image>>,
}

impl LoadedModule {
    fn image(&self, kernel: &str) -> Result<&Arc<Image>, DriverError> {
        let image = self
            .kernel_images
            .get(kernel)
            .or(self.module_image.as_ref());
        image.ok_or_else(|| DriverError::NoFunction {
            module: self.module.name.clone(),
            name: kernel.to_owned(),
        })
    }
}

/// A driver whose devices are emulated by the CPU.
pub struct EmulatedDriver {
    options: EmulatedOptions,
    devices: Vec<DeviceInfo>,
    compiler: Compiler,
    memories: Box<Memories>,
    granted: BTreeSet<(u32, u32)>,
    modules: Vec<LoadedModule>,
    functions: Vec<(ModuleHandle, String)>,
    graphs: Vec<Option<GraphInstance>>,
    engine: RunState,
    launches: u64,
    failed: Option<DriverError>,
}

// SAFETY: the pointers refer to code and memory that the driver owns. Threads do not keep pointers between driver
// calls.
unsafe impl Send for EmulatedDriver {}

impl EmulatedDriver {
    /// Creates a driver with the devices that the options describe.
    ///
    /// # Errors
    ///
    /// Returns [`DriverError::NoCompiler`] if no C++ compiler is found.
    pub fn new(options: EmulatedOptions) -> Result<EmulatedDriver, DriverError> {
        let cache = options.cache.clone();
        let cache = cache.map_or_else(|| cache_dir("emulated-cuda"), Ok)?;
        let info = |i: usize| DeviceInfo {
            name: format!("emulated device {i}"),
            card: i as u32,
            capability: options.capability,
            multiprocessors: 16,
            memory: options.memory,
            shared_per_block: 227 << 10,
        };
        Ok(EmulatedDriver {
            devices: (0..options.devices).map(info).collect(),
            compiler: Compiler::find(cache)?,
            memories: Box::default(),
            granted: BTreeSet::new(),
            modules: Vec::new(),
            functions: Vec::new(),
            graphs: Vec::new(),
            engine: RunState::new(options.max_resident_blocks.max(1)),
            launches: 0,
            failed: None,
            options,
        })
    }

    /// Returns the C++ compiler's program and version.
    pub fn compiler(&self) -> String {
        self.compiler.describe()
    }

    /// Returns the bytes of an allocation that checked kernels have read, counting repeated reads.
    pub fn bytes_read(&self, memory: Memory) -> u64 {
        self.memories.bytes_read(memory)
    }

    fn device_info(&self, device: Device) -> Result<&DeviceInfo, DriverError> {
        let found = self.devices.len();
        let known = self.devices.get(device.0 as usize);
        known.ok_or(DriverError::NoDevice { device, found })
    }

    fn prepare(&self, label: &str, work: Work) -> Result<Task, DriverError> {
        Ok(match work {
            Work::Kernel(kernel) => Task::Kernel(self.kernel(label, kernel)?),
            Work::Copy(copy) => {
                self.memories.range(copy.from, copy.bytes)?;
                self.memories.range(copy.to, copy.bytes)?;
                let apart = copy.from.address.abs_diff(copy.to.address) >= copy.bytes;
                if !apart {
                    let what = format!("{label} copies between ranges that overlap");
                    return Err(DriverError::Malformed { what });
                }
                Task::Copy(copy)
            }
            Work::Set(set) => {
                self.memories.range(set.to, set.bytes)?;
                Task::Set(set)
            }
            Work::Host(work) => Task::Host(work),
            Work::Join => Task::Join,
        })
    }

    fn kernel(&self, label: &str, node: KernelNode) -> Result<Launch, DriverError> {
        let malformed = |what: String| DriverError::Malformed {
            what: format!("{label}: {what}"),
        };
        let found = self.functions.get(node.function.0 as usize);
        let (module, name) =
            found.ok_or_else(|| malformed("the function does not exist".into()))?;
        let loaded = &self.modules[module.0 as usize];
        let device = self.device_info(loaded.device)?;
        let product = |n: [u32; 3]| n.iter().map(|&n| u64::from(n)).product::<u64>();
        let (blocks, threads) = (product(node.grid), product(node.block));
        if blocks == 0 || threads == 0 || blocks >= 1 << 31 || threads > 1024 {
            let what =
                format!("kernel {name} is launched with {blocks} blocks of {threads} threads");
            return Err(malformed(what));
        }
        if node.shared_bytes > device.shared_per_block {
            let what = format!(
                "kernel {name} requests {} bytes of shared memory",
                node.shared_bytes
            );
            return Err(malformed(what));
        }
        // Moving a vector does not change the addresses of its elements.
        let image = loaded.image(name)?;
        let kernel = image.kernel(name, &node.args, threads);
        Ok(Launch {
            device: loaded.device,
            image: Arc::clone(image),
            kernel: kernel.map_err(|e| malformed(e.to_string()))?,
            name: name.clone(),
            grid: node.grid,
            block: node.block,
            shared_bytes: node.shared_bytes,
            _args: node.args,
        })
    }

    fn image(&self, name: &str, source: &str) -> Result<Arc<Image>, DriverError> {
        let path = self.compiler.compile(name, source, self.options.build)?;
        Ok(Arc::new(Image::load(name, &path, CALLS)?))
    }
}

fn resolve_fault(graph: &[GraphNode], raw: &UnresolvedFault) -> Fault {
    let place = |at: &CodeLocation| match at {
        CodeLocation::Named(name) => name.clone(),
        CodeLocation::Code { node, pc } => match &graph[*node].task {
            Task::Kernel(k) => k
                .image
                .source_line(*pc)
                .unwrap_or_else(|| "an unknown line".into()),
            _ => graph[*node].label.clone(),
        },
    };
    let kernel = match &graph[raw.node].task {
        Task::Kernel(k) => k.name.clone(),
        _ => String::new(),
    };
    let other = raw.other.as_ref().map(place).unwrap_or_default();
    Fault {
        kind: raw.kind,
        kernel,
        label: graph[raw.node].label.clone(),
        block: raw.block,
        thread: raw.thread,
        at: place(&raw.at),
        what: raw.what.replace("{}", &other),
    }
}

impl Driver for EmulatedDriver {
    fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.device_info(device)?;
        Ok(self.memories.free_bytes(device, self.options.memory))
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        self.device_info(device)?;
        // Images of separately compiled kernels are loaded on first use, once for all modules.
        if !self.modules.iter().any(|m| m.module == *module) {
            let sources: Vec<Arc<str>> = module.kernel_sources.values().cloned().collect();
            self.compiler
                .compile_ahead(&module.name, &sources, self.options.build);
        }
        let module_image = match module.kernel_sources.is_empty() {
            true => Some(self.image(&module.name, &module.source)?),
            false => None,
        };
        self.modules.push(LoadedModule {
            device,
            module: module.clone(),
            module_image,
            kernel_images: BTreeMap::new(),
        });
        Ok(ModuleHandle(self.modules.len() as u32 - 1))
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        let number = module.0 as usize;
        let loaded = self.modules.get(number);
        let loaded = loaded.ok_or_else(|| DriverError::NoFunction {
            module: module.to_string(),
            name: name.to_owned(),
        })?;
        if let Some(source) = loaded.module.kernel_sources.get(name)
            && !loaded.kernel_images.contains_key(name)
        {
            let image = self.image(&loaded.module.name, source)?;
            self.modules[number]
                .kernel_images
                .insert(name.to_owned(), image);
        }
        self.modules[number].image(name)?.check_kernel(name)?;
        self.functions.push((module, name.to_owned()));
        Ok(Function(self.functions.len() as u32 - 1))
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        let free = self.free_memory(device)?;
        if bytes > free {
            return Err(DriverError::OutOfMemory {
                place: device.to_string(),
                needed: bytes,
                free,
            });
        }
        self.memories.allocate(Side::Device(device), bytes)
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.memories.allocate(Side::Host, bytes)
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        self.memories.free(memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        self.device_info(reader)?;
        self.device_info(owner)?;
        let refuse = |why: PeerFailure| {
            Err(DriverError::NoPeerAccess {
                device: reader,
                owner,
                why,
            })
        };
        match self.options.links {
            Links::HostOnly if reader != owner => refuse(PeerFailure::NoLink),
            Links::WrongData if reader != owner => refuse(PeerFailure::WrongData),
            _ => {
                self.granted.insert((reader.0, owner.0));
                Ok(())
            }
        }
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        let at = self.memories.range(to, bytes.len() as u64)?;
        // SAFETY: the range is within one allocation, and no kernel runs now.
        unsafe { std::ptr::copy(bytes.as_ptr(), at, bytes.len()) };
        Ok(())
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        let at = self.memories.range(from, bytes.len() as u64)?;
        // SAFETY: the range is within one allocation, and no kernel runs now.
        unsafe { std::ptr::copy(at.cast_const(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let order = spec.order()?;
        let mut prepared = Vec::with_capacity(spec.nodes.len());
        for node in spec.nodes {
            prepared.push(GraphNode {
                task: self.prepare(&node.label, node.work)?,
                label: node.label,
                next: Vec::new(),
                before: 0,
                programmatic: Vec::new(),
            });
        }
        for edge in spec.edges {
            prepared[edge.from].next.push((edge.to, edge.kind));
            prepared[edge.to].before += 1;
            if edge.kind == EdgeKind::Programmatic {
                prepared[edge.to].programmatic.push(edge.from);
            }
        }
        let full = |&(to, kind): &(usize, EdgeKind)| (to, kind == EdgeKind::Full);
        let next: Vec<Vec<_>> = prepared
            .iter()
            .map(|p| p.next.iter().map(full).collect())
            .collect();
        let reach = match self.options.build {
            Build::Checked => Reachability::new(&order, &next),
            Build::Plain => Reachability::default(),
        };
        self.graphs.push(Some(GraphInstance {
            nodes: prepared,
            reach: Rc::new(reach),
            times: None,
        }));
        Ok(Graph(self.graphs.len() as u32 - 1))
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let graph = self.instantiate(spec.in_sequence()?)?;
        if let Some(Some(instance)) = self.graphs.get_mut(graph.0 as usize) {
            instance.times = Some(Vec::new());
        }
        Ok(graph)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.synchronize()?;
        let slot = self.graphs.get(graph.0 as usize);
        let found = slot.and_then(Option::as_ref);
        let times = found.ok_or_else(|| no_graph(graph))?.times.clone();
        times.ok_or_else(|| DriverError::Malformed {
            what: format!("{graph} does not measure its nodes"),
        })
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        let slot = self.graphs.get_mut(graph.0 as usize);
        match slot.and_then(Option::take) {
            Some(_) => Ok(()),
            None => Err(no_graph(graph)),
        }
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        let slot = self.graphs.get_mut(graph.0 as usize);
        let ready = slot
            .and_then(Option::as_mut)
            .ok_or_else(|| no_graph(graph))?;
        if self.failed.is_some() {
            return Ok(());
        }
        self.launches += 1;
        let seed = self
            .options
            .seed
            .wrapping_mul(0x1_0001)
            .wrapping_add(self.launches);
        if let Build::Checked = self.options.build {
            let checker = self.engine.checker.get_or_insert_with(|| AccessChecker {
                races: RaceDetector::default(),
                memories: &raw mut *self.memories,
                granted: BTreeSet::new(),
            });
            checker.memories = &raw mut *self.memories;
            checker.granted.clone_from(&self.granted);
        }
        self.engine.ends = ready.times.is_some().then(Vec::new);
        let mut begun = Instant::now();
        let result = self.engine.run(&mut ready.nodes, &ready.reach, seed);
        if let (Some(times), Some(ends)) = (&mut ready.times, self.engine.ends.take()) {
            *times = vec![Duration::ZERO; ready.nodes.len()];
            // The nodes run one after another.
            for (node, end) in ends {
                times[node] = end - begun;
                begun = end;
            }
        }
        self.failed = result.err().map(|stop| match stop {
            StopReason::Fault(raw) => {
                DriverError::Fault(Box::new(resolve_fault(&ready.nodes, &raw)))
            }
            StopReason::Host { label, cause } => DriverError::Host { label, cause },
        });
        Ok(())
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

fn no_graph(graph: Graph) -> DriverError {
    DriverError::Malformed {
        what: format!("{graph} does not exist"),
    }
}
