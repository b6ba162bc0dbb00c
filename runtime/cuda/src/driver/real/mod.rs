//! The driver of graphics cards.
//!
//! The CUDA library is loaded on first use. A missing library or function is an error, not a panic.

mod device;
mod events;
mod graph;
mod library_check;
mod staging;

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::Duration;

use cudarc::driver::sys::{self, CUresult};

use super::graph::{Endpoint, GraphSpec, KernelNode, Side, Work};
use super::{
    Cubin, CudaVersion, Device, DeviceInfo, Driver, DriverError, Function, Graph, Memory, Module,
    ModuleHandle, PeerFailure,
};
use crate::nvrtc::{Cache, Nvrtc, NvrtcError, target_for, with_prelude};
use device::{Context, check, list_devices};
pub use device::{cards, driver_version};
use graph::{Executable, HostFailure, LaunchSite, Timing, build};
use staging::Staging;

struct LoadedModule {
    device: Device,
    name: String,
    handle: sys::CUmodule,
}

struct LoadedFunction {
    module: ModuleHandle,
    handle: sys::CUfunction,
    name: String,
    /// The maximum number of threads per block that the kernel's registers allow.
    max_threads: u32,
    /// The current limit of dynamic shared memory in bytes.
    shared: u32,
}

/// A driver of graphics cards, which calls NVIDIA's driver.
pub struct CudaDriver {
    // Drop order: objects in contexts precede the contexts.
    graphs: Vec<Option<Executable>>,
    functions: Vec<LoadedFunction>,
    modules: Vec<LoadedModule>,
    memories: HashMap<u64, Memory>,
    stream: sys::CUstream,
    staging: Staging,
    failed: HostFailure,
    infos: Vec<DeviceInfo>,
    contexts: Vec<Context>,
    /// The first open context. Calls without a device use it.
    home: usize,
    /// The CUDA version that the driver supports.
    version: CudaVersion,
    cache: Cache,
}

// SAFETY: the driver's handles belong to the process, and every call sets its context first.
unsafe impl Send for CudaDriver {}

impl CudaDriver {
    /// Opens the cards with these numbers, and lists the other cards. `cache` is the folder for code that NVRTC
    /// compiles.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver is missing or too old, the machine has no device, or a number is unknown.
    pub fn new(cards: &[u32], cache: impl Into<PathBuf>) -> Result<CudaDriver, DriverError> {
        let (version, mut contexts) = list_devices()?;
        let count = contexts.len();
        for card in cards {
            let device = Device(*card);
            let none = DriverError::NoDevice {
                device,
                found: count,
            };
            contexts.get_mut(*card as usize).ok_or(none)?.open()?;
        }
        let home = cards.first().map_or(0, |card| *card as usize);
        contexts[home].open()?;
        contexts[home].enter()?;
        let mut stream = std::ptr::null_mut();
        // SAFETY: the pointer is valid for writes. The new stream does not wait for the default stream.
        let result = unsafe { sys::cuStreamCreate(&raw mut stream, 1) };
        check("creating a stream", result)?;
        Ok(CudaDriver {
            graphs: Vec::new(),
            functions: Vec::new(),
            modules: Vec::new(),
            memories: HashMap::new(),
            stream,
            staging: Staging::new(stream),
            failed: HostFailure::default(),
            infos: contexts.iter().map(|c| c.info.clone()).collect(),
            contexts,
            home,
            version,
            cache: Cache::new(cache),
        })
    }

    fn context(&self, device: Device) -> Result<&Context, DriverError> {
        let found = self.contexts.len();
        let context = self.contexts.get(device.0 as usize);
        context
            .filter(|c| c.is_open())
            .ok_or(DriverError::NoDevice { device, found })
    }

    /// Returns a module's code for a device: precompiled, or compiled now. If the driver is too old for the precompiled
    /// code, the compiler of this machine may still write code that the driver loads.
    fn code(&self, device: Device, module: &Module) -> Result<Vec<u8>, DriverError> {
        let capability = self.context(device)?.info.capability;
        let refuse = |why: String| DriverError::Architecture {
            module: module.name.clone(),
            device,
            capability,
            why,
        };
        let target = target_for(capability)
            .ok_or_else(|| refuse("tpc does not support this capability".into()))?;
        let too_new = |cubin: &Cubin| {
            let needed = cubin.min_driver().filter(|v| *v > self.version)?;
            Some(DriverError::CodeTooNew {
                module: module.name.clone(),
                target: target.to_owned(),
                needed,
                found: self.version,
            })
        };
        let mut unusable = None;
        for cubin in module.cubins.iter().filter(|c| c.target == target) {
            match too_new(cubin) {
                None => return Ok(cubin.code.to_vec()),
                refused => unusable = refused,
            }
        }
        let text = with_prelude(&module.source);
        let compiled = match self.cache.find(&text, target) {
            Some(kept) => Ok(kept),
            None => Nvrtc::find()
                .and_then(|nvrtc| self.cache.compile(&nvrtc, &module.name, &text, target)),
        };
        match (compiled, unusable) {
            (Ok(compiled), _) => {
                let cubin = Cubin {
                    target: target.to_owned(),
                    code: compiled.cubin.into(),
                };
                too_new(&cubin).map_or_else(|| Ok(cubin.code.to_vec()), Err)
            }
            (Err(_), Some(unusable)) => Err(unusable),
            (Err(NvrtcError::Compile { module, log, .. }), None) => {
                Err(DriverError::Compile { module, log })
            }
            (Err(other), None) => Err(refuse(format!(
                "no precompiled code for {target}, and compiling failed: {other}"
            ))),
        }
    }

    fn range(&self, at: Endpoint, bytes: u64) -> Result<(), DriverError> {
        let holds = |m: &Memory| {
            let end = at.address.checked_add(bytes);
            m.side == at.side
                && at.address >= m.address
                && end.is_some_and(|e| e <= m.address + m.bytes)
        };
        match self.memories.values().any(holds) {
            true => Ok(()),
            false => Err(DriverError::Address {
                side: at.side.to_string(),
                address: at.address,
                bytes,
            }),
        }
    }

    /// Checks the launch's threads per block, and raises the limit of dynamic shared memory if the launch needs more.
    fn prepare_launch(&mut self, kernel: &KernelNode) -> Result<(), DriverError> {
        let missing = || DriverError::Malformed {
            what: format!("{} does not exist", kernel.function),
        };
        let found = self
            .functions
            .get_mut(kernel.function.0 as usize)
            .ok_or_else(missing)?;
        let threads: u32 = kernel.block.iter().product();
        if threads > found.max_threads {
            return Err(DriverError::TooManyThreads {
                kernel: found.name.clone(),
                threads,
                max: found.max_threads,
            });
        }
        if kernel.shared_bytes > found.shared {
            let attribute =
                sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            let bytes = i32::try_from(kernel.shared_bytes).unwrap_or(i32::MAX);
            // SAFETY: the function belongs to a loaded module.
            let result = unsafe { sys::cuFuncSetAttribute(found.handle, attribute, bytes) };
            check("setting the shared memory of a kernel", result)?;
            found.shared = kernel.shared_bytes;
        }
        Ok(())
    }

    fn site(&self, kernel: &KernelNode) -> Result<LaunchSite, DriverError> {
        let found = &self.functions[kernel.function.0 as usize];
        let context = self.context(self.modules[found.module.0 as usize].device)?;
        Ok(LaunchSite {
            function: found.handle,
            context: context.context,
            programmatic: context.info.capability.0 >= 9,
        })
    }

    /// True if a pattern survives copies between two devices, in both directions. The capability bit alone does not
    /// show this: behind an IOMMU or PCIe ACS, peer copies may return other data.
    fn exchanges_data(&mut self, reader: Device, owner: Device) -> Result<bool, DriverError> {
        const BYTES: usize = 64 << 10;
        let mut same = true;
        for (source, target) in [(owner, reader), (reader, owner)] {
            let salt = (source.0 * 31 + target.0) as usize;
            let pattern: Vec<u8> = (0..BYTES).map(|i| (i * 7 + i / 251 + salt) as u8).collect();
            let from = self.allocate(source, BYTES as u64)?;
            let to = match self.allocate(target, BYTES as u64) {
                Ok(to) => to,
                Err(e) => {
                    self.free(from)?;
                    return Err(e);
                }
            };
            let mut found = vec![0; BYTES];
            let copied = self.peer_copy(reader, (from, to), &pattern, &mut found);
            self.free(from)?;
            self.free(to)?;
            copied?;
            same &= found == pattern;
        }
        Ok(same)
    }

    /// Writes `pattern` to the first memory, copies it to the second in the context of `device`, and reads it back.
    fn peer_copy(
        &mut self,
        device: Device,
        (from, to): (Memory, Memory),
        pattern: &[u8],
        found: &mut [u8],
    ) -> Result<(), DriverError> {
        self.context(device)?.enter()?;
        // SAFETY: both memories have the size of the pattern.
        unsafe {
            self.staging.write(from.address, pattern)?;
            self.staging.write(to.address, &vec![0; found.len()])?;
            let stream = self.stream;
            let result = sys::cuMemcpyAsync(to.address, from.address, found.len(), stream);
            check("copying between devices", result)?;
            self.staging.read(to.address, found)
        }
    }

    fn executable(&mut self, spec: GraphSpec, timing: Timing) -> Result<Graph, DriverError> {
        spec.order()?;
        for node in &spec.nodes {
            match &node.work {
                Work::Kernel(kernel) => self.prepare_launch(kernel)?,
                Work::Copy(copy) => {
                    self.range(copy.from, copy.bytes)?;
                    self.range(copy.to, copy.bytes)?;
                }
                Work::Set(set) => self.range(set.to, set.bytes)?,
                Work::Host(_) | Work::Join => {}
            }
        }
        let first = &self.contexts[self.home];
        first.enter()?;
        let on = (first.context, timing);
        let made = build(spec, on, &self.failed, &|kernel| self.site(kernel))?;
        self.graphs.push(Some(made));
        Ok(Graph(self.graphs.len() as u32 - 1))
    }

    fn record(&mut self, memory: Memory) -> Memory {
        self.memories.insert(memory.address, memory);
        memory
    }
}

impl Driver for CudaDriver {
    fn devices(&self) -> &[DeviceInfo] {
        &self.infos
    }

    fn free_memory(&self, device: Device) -> Result<u64, DriverError> {
        self.context(device)?.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: both pointers are valid for writes.
        let result = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        check("reading the free memory of a device", result).map(|()| free as u64)
    }

    fn load(&mut self, device: Device, module: &Module) -> Result<ModuleHandle, DriverError> {
        let code = self.code(device, module)?;
        let context = self.context(device)?;
        context.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the code is an ELF file, which contains its length.
        let result =
            unsafe { sys::cuModuleLoadData(&raw mut handle, code.as_ptr().cast::<c_void>()) };
        if let CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU | CUresult::CUDA_ERROR_INVALID_IMAGE = result
        {
            return Err(DriverError::Architecture {
                module: module.name.clone(),
                device,
                capability: context.info.capability,
                why: "the driver rejects its precompiled code".into(),
            });
        }
        check(&format!("loading module {}", module.name), result)?;
        self.modules.push(LoadedModule {
            device,
            name: module.name.clone(),
            handle,
        });
        Ok(ModuleHandle(self.modules.len() as u32 - 1))
    }

    fn function(&mut self, module: ModuleHandle, name: &str) -> Result<Function, DriverError> {
        let none = |module: String| DriverError::NoFunction {
            module,
            name: name.to_owned(),
        };
        let loaded = self.modules.get(module.0 as usize);
        let loaded = loaded.ok_or_else(|| none(module.to_string()))?;
        self.context(loaded.device)?.enter()?;
        let symbol = CString::new(name).map_err(|_| none(loaded.name.clone()))?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the module is loaded, and the name ends with a zero byte.
        let result =
            unsafe { sys::cuModuleGetFunction(&raw mut handle, loaded.handle, symbol.as_ptr()) };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Err(none(loaded.name.clone()));
        }
        check("looking up a kernel", result)?;
        let mut max_threads = 0;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the pointer is valid for writes, and the function belongs to a loaded module.
        let result = unsafe { sys::cuFuncGetAttribute(&raw mut max_threads, attribute, handle) };
        check("reading the attributes of a kernel", result)?;
        self.functions.push(LoadedFunction {
            module,
            handle,
            name: name.to_owned(),
            max_threads: u32::try_from(max_threads).unwrap_or(0),
            shared: 0,
        });
        Ok(Function(self.functions.len() as u32 - 1))
    }

    fn allocate(&mut self, device: Device, bytes: u64) -> Result<Memory, DriverError> {
        self.context(device)?.enter()?;
        let mut address = 0;
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // SAFETY: the pointer is valid for writes.
        let result = unsafe { sys::cuMemAlloc_v2(&raw mut address, size) };
        if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(DriverError::OutOfMemory {
                place: device.to_string(),
                needed: bytes,
                free: self.free_memory(device)?,
            });
        }
        check("allocating memory", result)?;
        let side = Side::Device(device);
        Ok(self.record(Memory {
            side,
            address,
            bytes,
        }))
    }

    fn allocate_host(&mut self, bytes: u64) -> Result<Memory, DriverError> {
        self.contexts[self.home].enter()?;
        let mut pointer = std::ptr::null_mut();
        let size = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
        // `PORTABLE`: all contexts can use the memory. `DEVICEMAP`: kernels use the same address.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: the pointer is valid for writes.
        let result = unsafe { sys::cuMemHostAlloc(&raw mut pointer, size, flags) };
        if result == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Err(DriverError::OutOfMemory {
                place: Side::Host.to_string(),
                needed: bytes,
                free: 0,
            });
        }
        check("allocating host memory", result)?;
        // SAFETY: the allocation has `size` bytes.
        unsafe { pointer.cast::<u8>().write_bytes(0, size) };
        Ok(self.record(Memory {
            side: Side::Host,
            address: pointer as u64,
            bytes,
        }))
    }

    fn free(&mut self, memory: Memory) -> Result<(), DriverError> {
        let ours = self
            .memories
            .get(&memory.address)
            .is_some_and(|m| m.side == memory.side);
        if !ours {
            return Err(DriverError::Address {
                side: memory.side.to_string(),
                address: memory.address,
                bytes: memory.bytes,
            });
        }
        self.memories.remove(&memory.address);
        release(&self.contexts, self.home, memory)
    }

    fn grant(&mut self, reader: Device, owner: Device) -> Result<(), DriverError> {
        let (from, to) = (self.context(reader)?, self.context(owner)?);
        if reader == owner {
            return Ok(());
        }
        let refuse = |why: PeerFailure| DriverError::NoPeerAccess {
            device: reader,
            owner,
            why,
        };
        let none = refuse(PeerFailure::NoLink);
        let mut can = 0;
        from.enter()?;
        // SAFETY: both devices are valid, and the reader's context is current.
        unsafe {
            check(
                "querying peer access",
                sys::cuDeviceCanAccessPeer(&raw mut can, from.device, to.device),
            )?;
            if can == 0 {
                return Err(none);
            }
            match sys::cuCtxEnablePeerAccess(to.context, 0) {
                CUresult::CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED => {}
                CUresult::CUDA_ERROR_PEER_ACCESS_UNSUPPORTED
                | CUresult::CUDA_ERROR_TOO_MANY_PEERS => return Err(none),
                result => check("enabling peer access", result)?,
            }
        }
        match self.exchanges_data(reader, owner)? {
            true => Ok(()),
            false => Err(refuse(PeerFailure::WrongData)),
        }
    }

    fn write(&mut self, to: Endpoint, bytes: &[u8]) -> Result<(), DriverError> {
        self.range(to, bytes.len() as u64)?;
        match to.side {
            _ if bytes.is_empty() => Ok(()),
            Side::Host => {
                // SAFETY: the range is within page-locked memory of this driver, which no graph uses now.
                unsafe {
                    (to.address as *mut u8).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
                }
                Ok(())
            }
            Side::Device(_) => {
                self.contexts[self.home].enter()?;
                // SAFETY: the range is within device memory of this driver.
                unsafe { self.staging.write(to.address, bytes) }
            }
        }
    }

    fn read(&mut self, from: Endpoint, bytes: &mut [u8]) -> Result<(), DriverError> {
        self.range(from, bytes.len() as u64)?;
        match from.side {
            _ if bytes.is_empty() => Ok(()),
            Side::Host => {
                let start = from.address as *const u8;
                // SAFETY: the range is within page-locked memory of this driver, which no graph uses now.
                unsafe { start.copy_to_nonoverlapping(bytes.as_mut_ptr(), bytes.len()) };
                Ok(())
            }
            Side::Device(_) => {
                self.contexts[self.home].enter()?;
                // SAFETY: the range is within device memory of this driver.
                unsafe { self.staging.read(from.address, bytes) }
            }
        }
    }

    fn instantiate(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        self.executable(spec, Timing::Off)
    }

    fn instantiate_timed(&mut self, spec: GraphSpec) -> Result<Graph, DriverError> {
        self.executable(spec, Timing::Nodes)
    }

    fn node_times(&mut self, graph: Graph) -> Result<Vec<Duration>, DriverError> {
        self.synchronize()?;
        let found = self.graphs.get(graph.0 as usize);
        let found = found.and_then(Option::as_ref);
        found.ok_or_else(|| no_graph(graph))?.node_times()
    }

    fn discard(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.synchronize()?;
        let slot = self.graphs.get_mut(graph.0 as usize);
        let found = slot.and_then(Option::take);
        found.map(drop).ok_or_else(|| no_graph(graph))
    }

    fn launch(&mut self, graph: Graph) -> Result<(), DriverError> {
        self.contexts[self.home].enter()?;
        let found = self.graphs.get(graph.0 as usize);
        let found = found
            .and_then(Option::as_ref)
            .ok_or_else(|| no_graph(graph))?;
        // SAFETY: the graph and the memory that it uses are alive.
        check("launching a graph", unsafe {
            sys::cuGraphLaunch(found.handle, self.stream)
        })
    }

    fn synchronize(&mut self) -> Result<(), DriverError> {
        self.contexts[self.home].enter()?;
        let result = self.staging.wait();
        let host = self
            .failed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        result?;
        host.map_or(Ok(()), Err)
    }
}

fn no_graph(graph: Graph) -> DriverError {
    DriverError::Malformed {
        what: format!("{graph} does not exist"),
    }
}

fn release(contexts: &[Context], home: usize, memory: Memory) -> Result<(), DriverError> {
    let of = match memory.side {
        Side::Device(device) => device.0 as usize,
        Side::Host => home,
    };
    contexts[of].enter()?;
    // SAFETY: the memory was allocated by the matching function and is not in use.
    let result = unsafe {
        match memory.side {
            Side::Device(_) => sys::cuMemFree_v2(memory.address),
            Side::Host => sys::cuMemFreeHost(memory.address as *mut c_void),
        }
    };
    check("freeing memory", result)
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // Memory must not be freed while graphs run. A destructor cannot report an error.
        let _ = self.synchronize();
        self.graphs.clear();
        for (_, memory) in self.memories.drain() {
            let _ = release(&self.contexts, self.home, memory);
        }
        for module in self.modules.drain(..) {
            if let Some(context) = self.contexts.get(module.device.0 as usize) {
                let _ = context.enter();
                // SAFETY: the module's kernels have ended.
                unsafe { sys::cuModuleUnload(module.handle) };
            }
        }
        let _ = self.contexts[self.home].enter();
        // SAFETY: the stream is idle.
        unsafe {
            self.staging.free();
            sys::cuStreamDestroy_v2(self.stream);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_driver_is_told_so() {
        // SAFETY: this loads the system's library if it exists.
        if unsafe { sys::is_culib_present() } {
            return;
        }
        let error = CudaDriver::new(&[0], std::env::temp_dir()).err();
        match error {
            Some(DriverError::Missing { what }) => {
                assert!(what.contains("no libcuda"), "{what}");
            }
            other => panic!("{other:?}"),
        }
    }
}
