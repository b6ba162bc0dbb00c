//! The kernels of a step with the figures that determine their times. Planning needs no driver.

use serde::{Deserialize, Serialize};
use tpc_ir::program::Program;
use tpc_ir::{Bindings, Launch, RANK, Value};
use tpc_runtime::host::max_sizes;
use tpc_runtime::{ExecError, Options};

use super::launches::{KernelRun, Launches};
use super::messages::MessageWork;
use super::options::CudaOptions;
use super::phase_graph::KernelPosition;
use super::phase_order::{NodeSink, order_nodes};
use super::roles::format_of;
use crate::driver::DeviceInfo;
use crate::kernels::Geometry;
use crate::planes::Planes;

/// The type and sizes of an operand or result in a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTensor {
    /// The name of the element type.
    pub dtype: String,
    /// The sizes.
    pub dims: [u64; RANK],
    /// The sizes in the largest batch of the shape.
    pub most: [u64; RANK],
    /// The bytes.
    pub bytes: u64,
    /// True for a weight in planes.
    pub planes: bool,
}

/// A kernel of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedKernel {
    /// The template with its arguments.
    pub name: String,
    /// The blocks along each axis.
    pub grid: [u32; 3],
    /// The threads per block.
    pub threads: u32,
    /// The dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// The bytes of weights in planes that the launch reads.
    pub weight_bytes: u64,
    /// The elements of these weights.
    pub weight_elements: u64,
    /// The operands.
    pub operands: Vec<PlannedTensor>,
    /// The results.
    pub results: Vec<PlannedTensor>,
}

/// A node of a step's graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedNode {
    /// The device and its kernel; `None` for an op on the host.
    pub kernel: Option<(usize, PlannedKernel)>,
    /// Positions of the nodes that this node waits for.
    pub after: Vec<usize>,
}

/// Plans the kernels of a batch, in an order in which each node follows the nodes that it waits for. `multiprocessors`
/// has the multiprocessors of each device. `shape` is the index of the batch shape, and `sizes` the sizes of the batch.
///
/// # Errors
///
/// Returns an error if an op is not supported or a size is unknown.
pub fn planned_step(
    program: &Program,
    multiprocessors: &[u32],
    shape: usize,
    sizes: &Bindings,
) -> Result<Vec<PlannedNode>, ExecError> {
    let info = |units: &u32| DeviceInfo {
        name: String::new(),
        card: 0,
        capability: (9, 0),
        multiprocessors: *units,
        memory: 0,
        shared_per_block: 0,
    };
    let infos: Vec<DeviceInfo> = multiprocessors.iter().map(info).collect();
    if infos.len() < program.graph.devices.len() || shape >= program.shapes.len() {
        let what = "a step needs the multiprocessors of each device, and a batch shape".to_owned();
        return Err(ExecError::Parameter { what });
    }
    let options = CudaOptions {
        options: Options::default(),
        ..CudaOptions::with_threads(1)
    };
    let launches = Launches::new((program, None), &infos, &mut |_, _| Ok(true), options)?;
    let mut nodes = PlannedNodes {
        program,
        launches: &launches,
        shape,
        sizes: sizes.in_units(program.graph.cell_unit.0),
        nodes: Vec::new(),
        first: 0,
        failed: None,
    };
    for phase in &program.phases {
        let first = nodes.nodes.len();
        nodes.first = first;
        order_nodes((program, &launches), (phase, shape), &mut nodes)?;
        // A phase starts when the previous phase has ended.
        if let Some(last) = first.checked_sub(1) {
            let starts = nodes.nodes[first..].iter_mut();
            for node in starts.filter(|n| n.after.is_empty()) {
                node.after.push(last);
            }
        }
    }
    match nodes.failed {
        Some(e) => Err(e),
        None => Ok(nodes.nodes),
    }
}

struct PlannedNodes<'a> {
    program: &'a Program,
    launches: &'a Launches,
    shape: usize,
    sizes: Bindings,
    nodes: Vec<PlannedNode>,
    /// The first node of the phase.
    first: usize,
    failed: Option<ExecError>,
}

impl PlannedNodes<'_> {
    /// Adds a node. Nodes in `after`, and the result, are counted from the first of the phase.
    fn push(&mut self, kernel: Option<(usize, PlannedKernel)>, after: &[usize]) -> usize {
        self.nodes.push(PlannedNode {
            kernel,
            after: after.iter().map(|n| self.first + n).collect(),
        });
        self.nodes.len() - 1 - self.first
    }

    fn tensor(&self, value: Value) -> Result<PlannedTensor, ExecError> {
        let dims = max_sizes(self.program, value, &self.sizes)?.map(|n| n as u64);
        let dtype = self.program.graph.value(value).ty.dtype;
        let rows: u64 = dims[1..].iter().product();
        Ok(PlannedTensor {
            dtype: dtype.name().to_owned(),
            dims,
            most: max_sizes(self.program, value, &self.program.shapes[self.shape].most)?
                .map(|n| n as u64),
            bytes: dtype.bytes(dims[0]).unwrap_or(0).saturating_mul(rows),
            planes: format_of(self.program, value) == Planes::FORMAT,
        })
    }

    fn planned(&self, run: &KernelRun) -> Result<Option<PlannedKernel>, ExecError> {
        let Some(kernel) = run.kernels[self.shape].as_ref() else {
            return Ok(None);
        };
        let slots = &self.launches.slots[run.slots.clone()];
        let (operands, rest) = slots.split_at(run.operands);
        let tensors = |values: &[Value]| -> Result<Vec<PlannedTensor>, ExecError> {
            values.iter().map(|v| self.tensor(*v)).collect()
        };
        let Geometry {
            grid,
            threads,
            shared_bytes,
        } = kernel.geometry;
        let read = run.weights.get(self.shape).copied().unwrap_or_default();
        Ok(Some(PlannedKernel {
            name: kernel.instance.name().to_owned(),
            grid,
            threads,
            shared_bytes,
            weight_bytes: read.bytes,
            weight_elements: read.elements,
            operands: tensors(operands)?,
            results: tensors(&rest[..run.results])?,
        }))
    }
}

impl NodeSink for PlannedNodes<'_> {
    fn kernel(&mut self, at: KernelPosition, run: &KernelRun, after: &[usize]) -> Option<usize> {
        match self.planned(run) {
            Ok(kernel) => kernel.map(|k| self.push(Some((at.device, k)), after)),
            Err(e) => {
                self.failed.get_or_insert(e);
                None
            }
        }
    }

    fn host(&mut self, _: Launch, _: usize, after: &[usize]) -> usize {
        self.push(None, after)
    }

    fn message(&mut self, _: Launch, _: MessageWork, after: &[usize]) -> usize {
        self.push(None, after)
    }
}
