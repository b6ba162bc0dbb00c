//! Kernel launches outside of programs, for tests and checks of single kernels.

use std::collections::{BTreeMap, BTreeSet};

use tpc_ir::program::BatchLayout;
use tpc_ir::{DType, RANK};
use tpc_runtime::ExecError;

use super::device_view::DeviceView;
use super::kernel_node::kernel_node;
use super::memory::Faults;
use crate::driver::{Device, Driver, DriverError, Endpoint, Function, KernelNode, Memory, Module};
use crate::kernels::{self, Instance, Kernel};

/// A tensor in memory that kernels can access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorView {
    /// The address of the first element.
    pub address: u64,
    /// The size of each axis, in elements.
    pub dims: [usize; RANK],
    /// The distance between indices along each axis, in bytes; along axis 0, between blocks.
    pub strides: [usize; RANK],
}

impl TensorView {
    fn empty(address: u64) -> TensorView {
        TensorView {
            address,
            dims: [0; RANK],
            strides: [0; RANK],
        }
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), DriverError> {
        let layout = BatchLayout {
            offset: 0,
            dims: self.dims.map(|n| n as u64),
            strides: self.strides.map(|n| n as u64),
        };
        // Encoding omits the element type.
        let view = DeviceView::new(self.address, DType::F32, &layout);
        let too_large = |e: ExecError| DriverError::Malformed {
            what: e.to_string(),
        };
        out.extend(view.encoded().map_err(too_large)?);
        Ok(())
    }
}

/// A kernel launch with its views, parameters, scratch memory and fault record.
#[derive(Debug)]
pub struct StandaloneLaunch {
    node: KernelNode,
    memories: Vec<Memory>,
    fault: Memory,
    counters: Memory,
}

fn filled(driver: &mut impl Driver, device: Device, bytes: &[u8]) -> Result<Memory, DriverError> {
    let memory = driver.allocate(device, bytes.len().max(1) as u64)?;
    driver.write(start(memory), bytes)?;
    Ok(memory)
}

fn start(memory: Memory) -> Endpoint {
    Endpoint {
        side: memory.side,
        address: memory.address,
    }
}

impl StandaloneLaunch {
    /// Prepares a launch. `views` has the operands, then the results. `size` is the runtime size of ops that have one.
    ///
    /// # Errors
    ///
    /// Returns an error if memory is exhausted or a size exceeds 32 bits.
    pub fn new(
        driver: &mut impl Driver,
        (device, function): (Device, Function),
        kernel: &Kernel,
        views: &[TensorView],
        size: Option<u64>,
    ) -> Result<StandaloneLaunch, DriverError> {
        let counters = vec![0; kernel.scratch.counters as usize];
        let counters = filled(driver, device, &counters)?;
        let parts = driver.allocate(device, kernel.scratch.parts.max(1))?;
        let mut views = views.to_vec();
        if let Some(size) = size {
            let mut view = TensorView::empty(0);
            view.dims[0] = size as usize;
            views.push(view);
        }
        if !kernel.scratch.is_none() {
            views.extend([counters, parts].map(|m| TensorView::empty(m.address)));
        }
        let mut frame = Vec::new();
        for view in &views {
            view.encode(&mut frame)?;
        }
        let frame = filled(driver, device, &frame)?;
        let params = filled(driver, device, &kernel.params)?;
        let fault = filled(driver, device, &[0; Faults::BYTES])?;
        let addresses = [frame, params, fault].map(|m| m.address);
        Ok(StandaloneLaunch {
            node: kernel_node(kernel, function, addresses, 0, |i| views[i].address),
            memories: vec![counters, parts, frame, params, fault],
            fault,
            counters,
        })
    }

    /// Returns the graph node of the launch.
    pub fn node(&self) -> KernelNode {
        self.node.clone()
    }

    /// Returns the index out of range that the kernel found, with its bound.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails.
    pub fn fault(&self, driver: &mut impl Driver) -> Result<Option<(i64, i64)>, DriverError> {
        let mut bytes = [0; Faults::BYTES];
        driver.read(start(self.fault), &mut bytes)?;
        let (words, _) = bytes.as_chunks::<8>();
        let [head, index, bound] = [0, 1, 2].map(|i| i64::from_ne_bytes(words[i]));
        Ok((head as u32 != 0).then_some((index, bound)))
    }

    /// True if the kernel left all counters of its scratch memory zero.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails.
    pub fn has_zero_counters(
        &self,
        driver: &mut impl Driver,
        kernel: &Kernel,
    ) -> Result<bool, DriverError> {
        let mut bytes = vec![1; kernel.scratch.counters as usize];
        driver.read(start(self.counters), &mut bytes)?;
        Ok(bytes.iter().all(|b| *b == 0))
    }

    /// Frees the memory. Graphs with the node must not run again.
    ///
    /// # Errors
    ///
    /// Returns an error if the driver fails.
    pub fn free(self, driver: &mut impl Driver) -> Result<(), DriverError> {
        self.memories.into_iter().try_for_each(|m| driver.free(m))
    }
}

/// Loads kernels on a device, in one module per family.
///
/// # Errors
///
/// Returns an error if a module does not compile or lacks a kernel.
pub fn load_kernels(
    driver: &mut impl Driver,
    device: Device,
    instances: &BTreeSet<Instance>,
) -> Result<BTreeMap<Instance, Function>, DriverError> {
    let mut out = BTreeMap::new();
    for source in kernels::modules(instances) {
        let of_module = instances.iter().filter(|i| i.module() == source.name);
        let module = driver.load(device, &Module::new(source.name, source.text))?;
        for instance in of_module {
            let function = driver.function(module, &instance.entry())?;
            out.insert(instance.clone(), function);
        }
    }
    Ok(out)
}
