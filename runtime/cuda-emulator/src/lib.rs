//! # CUDA devices that the CPU emulates
//!
//! [`EmulatedDriver`] is a [`Driver`] that needs no card.
//!
//! The host's C++ compiler compiles the same sources that a card would run. A CUDA thread is a fiber: it runs until it waits for
//! others, which is all that a kernel can see of the order of threads. Each device has memory of its own. The edges of a graph
//! are the only order; whatever else may happen in any order does so in one that depends on the seed.
//!
//! There are two [builds](Build) of a kernel. The plain one is for results. In the checked one every load and store is looked
//! at: bounds, device, alignment, and whether another access to the same bytes could come before or after it. The order that
//! the checks know is that of the edges, of barriers, and of flags that are released and acquired. A program in which they find
//! no race behaves on any memory as if its accesses came one by one, so stores need not be delayed to see what a card would do.

#![expect(
    unsafe_code,
    reason = "it runs compiled code on stacks and in memory of its own"
)]

mod abi;
mod block;
mod calls;
mod checked;
mod checks;
mod compiler;
mod copies;
mod engine;
mod fault;
mod fiber;
mod image;
mod memory;
mod random;
mod turns;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

pub use compiler::Build;

use tpc_cuda::{
    Device, DeviceInfo, Driver, DriverError, EdgeKind, Endpoint, Fault, Function, Graph, GraphSpec,
    KernelNode, Memory, Module, ModuleHandle, Side, Work, cache_dir,
};

use checked::Watch;
use checks::{Checks, Reach};
use compiler::Compiler;
use engine::{Engine, Launch, Prepared, Stop, Task};
use fault::{RawFault, Where};
use image::Image;
use memory::Memories;

/// Whether devices reach each other's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// They do where it is granted.
    Peers,
    /// They do not: only the host's memory is common.
    HostOnly,
}

/// What is emulated, and how.
#[derive(Clone, Debug)]
pub struct EmulatedOptions {
    /// The number of devices.
    pub devices: usize,
    /// The bytes of memory of each.
    pub memory: u64,
    /// The compute capability that they tell.
    pub capability: (u32, u32),
    /// Whether they reach each other's memory.
    pub links: Links,
    /// The most blocks that a device runs at once. Blocks that wait for others beyond these wait for ever.
    pub blocks_at_once: usize,
    /// How kernels are compiled.
    pub build: Build,
    /// What the order depends on where it is not defined.
    pub seed: u64,
    /// The folder of compiled kernels; without one, that of the variable `TPC_CUDA_CACHE`, or one in the user's cache.
    pub cache: Option<PathBuf>,
}

impl Default for EmulatedOptions {
    fn default() -> EmulatedOptions {
        EmulatedOptions {
            devices: 1,
            memory: 16 << 30,
            capability: (9, 0),
            links: Links::Peers,
            blocks_at_once: 64,
            build: Build::Plain,
            seed: 0,
            cache: None,
        }
    }
}

/// A graph that can be launched.
struct Ready {
    nodes: Vec<Prepared>,
    reach: Rc<Reach>,
}

struct Loaded {
    device: Device,
    module: Module,
    /// The image of the module, where its kernels are not apart.
    whole: Option<Arc<Image>>,
    /// Those of the kernels that were asked for, by their names.
    alone: BTreeMap<String, Arc<Image>>,
}

impl Loaded {
    /// The image that has a kernel.
    fn image(&self, kernel: &str) -> Result<&Arc<Image>, DriverError> {
        let image = self.alone.get(kernel).or(self.whole.as_ref());
        image.ok_or_else(|| DriverError::NoFunction {
            module: self.module.name.clone(),
            name: kernel.to_owned(),
        })
    }
}

/// Devices that are emulated by the CPU.
pub struct EmulatedDriver {
    options: EmulatedOptions,
    devices: Vec<DeviceInfo>,
    compiler: Compiler,
    memories: Box<Memories>,
    granted: BTreeSet<(u32, u32)>,
    modules: Vec<Loaded>,
    functions: Vec<(ModuleHandle, String)>,
    graphs: Vec<Option<Ready>>,
    engine: Engine,
    launches: u64,
    failed: Option<DriverError>,
}

// SAFETY: the pointers within are to memory that the driver owns, and to code; no thread keeps any while the driver is not
// called.
unsafe impl Send for EmulatedDriver {}

impl EmulatedDriver {
    /// Devices as the options say.
    ///
    /// # Errors
    /// [`DriverError::NoCompiler`] where no C++ compiler is found.
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
            engine: Engine::new(options.blocks_at_once.max(1)),
            launches: 0,
            failed: None,
            options,
        })
    }

    /// The bytes of an allocation that kernels of the checked build have read, each as often as it was read.
    pub fn bytes_read(&self, memory: Memory) -> u64 {
        self.memories.read(memory)
    }

    fn known(&self, device: Device) -> Result<&DeviceInfo, DriverError> {
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
        let (module, name) = found.ok_or_else(|| malformed("there is no such function".into()))?;
        let loaded = &self.modules[module.0 as usize];
        let device = self.known(loaded.device)?;
        let product = |n: [u32; 3]| n.iter().map(|&n| u64::from(n)).product::<u64>();
        let (blocks, threads) = (product(node.grid), product(node.block));
        if blocks == 0 || threads == 0 || blocks >= 1 << 31 || threads > 1024 {
            let what =
                format!("kernel {name} is launched with {blocks} blocks of {threads} threads");
            return Err(malformed(what));
        }
        if node.shared_bytes > device.shared_per_block {
            let what = format!(
                "kernel {name} asks for {} bytes of shared memory",
                node.shared_bytes
            );
            return Err(malformed(what));
        }
        // The addresses of the arguments stay: a moved vector keeps its bytes where they are.
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

    /// The image of a source.
    fn image(&self, name: &str, source: &str) -> Result<Arc<Image>, DriverError> {
        let path = self.compiler.compile(name, source, self.options.build)?;
        Ok(Arc::new(Image::load(name, &path)?))
    }
}

/// The fault with its places looked up.
fn told(graph: &[Prepared], raw: &RawFault) -> Fault {
    let place = |at: &Where| match at {
        Where::Named(name) => name.clone(),
        Where::Code { node, pc } => match &graph[*node].task {
            Task::Kernel(k) => k
                .image
                .line(*pc)
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
        self.known(device)?;
        Ok(self.memories.left(device, self.options.memory))
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        self.known(device)?;
        // Kernels that are apart are compiled when they are asked for, and so once for all modules that have them.
        let whole = match module.alone.is_empty() {
            true => Some(self.image(&module.name, &module.source)?),
            false => None,
        };
        self.modules.push(Loaded {
            device,
            module: module.clone(),
            whole,
            alone: BTreeMap::new(),
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
        if let Some(source) = loaded.module.alone.get(name)
            && !loaded.alone.contains_key(name)
        {
            let image = self.image(&loaded.module.name, source)?;
            self.modules[number].alone.insert(name.to_owned(), image);
        }
        self.modules[number].image(name)?.has(name)?;
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
        self.known(reader)?;
        self.known(owner)?;
        match self.options.links {
            Links::HostOnly if reader != owner => Err(DriverError::NoPeerAccess {
                device: reader,
                owner,
            }),
            _ => {
                self.granted.insert((reader.0, owner.0));
                Ok(())
            }
        }
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        let at = self.memories.range(to, bytes.len() as u64)?;
        // SAFETY: so many bytes were allocated there, and no kernel runs now.
        unsafe { std::ptr::copy(bytes.as_ptr(), at, bytes.len()) };
        Ok(())
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        let at = self.memories.range(from, bytes.len() as u64)?;
        // SAFETY: so many bytes were allocated there, and no kernel runs now.
        unsafe { std::ptr::copy(at.cast_const(), bytes.as_mut_ptr(), bytes.len()) };
        Ok(())
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        let order = spec.order()?;
        let mut prepared = Vec::with_capacity(spec.nodes.len());
        for node in spec.nodes {
            prepared.push(Prepared {
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
            Build::Checked => Reach::new(&order, &next),
            Build::Plain => Reach::default(),
        };
        self.graphs.push(Some(Ready {
            nodes: prepared,
            reach: Rc::new(reach),
        }));
        Ok(Graph(self.graphs.len() as u32 - 1))
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
            let watch = self.engine.watch.get_or_insert_with(|| Watch {
                checks: Checks::default(),
                memories: &raw mut *self.memories,
                granted: BTreeSet::new(),
            });
            watch.memories = &raw mut *self.memories;
            watch.granted.clone_from(&self.granted);
        }
        let result = self.engine.run(&mut ready.nodes, &ready.reach, seed);
        self.failed = result.err().map(|stop| match stop {
            Stop::Fault(raw) => DriverError::Fault(Box::new(told(&ready.nodes, &raw))),
            Stop::Host { label, cause } => DriverError::Host { label, cause },
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
        what: format!("there is no {graph}"),
    }
}
