//! Kernels, requests for kernels, and launch geometry.

use tpc_ir::program::StorageFormat;
use tpc_ir::{DType, RANK};
use tpc_runtime::Options;

use super::params::Params;
use super::source::{Arguments, Family, Instance};
use super::weight_argument::WeightArgument;

/// A tensor of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The element type.
    pub dtype: DType,
    /// The maximum sizes.
    pub max_dims: [usize; RANK],
    /// The storage format.
    pub format: StorageFormat,
}

impl Tensor {
    /// Returns a tensor in the layout of the file.
    pub const fn new(dtype: DType, max_dims: [usize; RANK]) -> Tensor {
        Tensor {
            dtype,
            max_dims,
            format: StorageFormat::FILE,
        }
    }

    /// Returns the maximum number of elements.
    pub fn elements(&self) -> usize {
        self.max_dims[0].saturating_mul(self.rows())
    }

    /// Returns the maximum number of rows.
    pub fn rows(&self) -> usize {
        let rows = self.max_dims[1].saturating_mul(self.max_dims[2]);
        rows.saturating_mul(self.max_dims[3])
    }
}

/// A request for a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operands.
    pub operands: &'a [Tensor],
    /// The results.
    pub results: &'a [Tensor],
    /// Options that change numerics.
    pub options: Options,
    /// The streaming multiprocessors of the device.
    pub multiprocessors: u32,
}

/// The grid, block size and shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The number of blocks along each axis.
    pub grid: [u32; 3],
    /// The number of threads per block.
    pub threads: u32,
    /// The dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
}

/// The sizes of a kernel's scratch memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// The bytes of counters, which are zero before and after the launch.
    pub counters: u64,
    /// The bytes of partial results that blocks exchange.
    pub parts: u64,
}

impl Scratch {
    /// Returns the maximum of each size.
    #[must_use]
    pub fn max(self, other: Scratch) -> Scratch {
        Scratch {
            counters: self.counters.max(other.counters),
            parts: self.parts.max(other.parts),
        }
    }

    /// True if both sizes are 0.
    pub fn is_none(self) -> bool {
        self == Scratch::default()
    }
}

/// A kernel with parameters and launch geometry.
///
/// The kernel receives views of the operands and results. A runtime size is axis 0 of an additional view. [Scratch
/// memory](Scratch) adds two views: counters and partial results. Views, tensors and parameters are in device memory. Some
/// kernels receive [weights](WeightArgument) as a further argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// The template instance.
    pub instance: Instance,
    /// The parameters as bytes.
    pub params: Vec<u8>,
    /// The geometry for the largest batch.
    pub geometry: Geometry,
    /// The scratch memory.
    pub scratch: Scratch,
    /// The weights that are arguments of the kernel.
    pub weights: Vec<WeightArgument>,
}

impl Kernel {
    /// Returns the relative error that the kernel adds to the error of f32 arithmetic. Attention of prompts rounds its
    /// weights and decoded values to f16; products of many tokens round weights and activations.
    pub fn rounding(&self) -> f64 {
        let name = self.instance.name();
        let template = name.split('<').next().unwrap_or(name);
        match template.starts_with("flash_prefill") || template.contains("gemm") {
            true => 6e-4,
            false => 0.0,
        }
    }

    pub(super) fn with_scratch(self, scratch: Scratch) -> Kernel {
        Kernel { scratch, ..self }
    }

    pub(super) fn with_weights(self, weights: Vec<WeightArgument>) -> Kernel {
        Kernel { weights, ..self }
    }
}

/// An op without a kernel for its operands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no CUDA kernel for {op} on {operands:?} giving {results:?}: {reason}")]
pub struct Unsupported {
    /// The name of the op.
    pub op: &'static str,
    /// The element types of the operands.
    pub operands: Vec<DType>,
    /// The element types of the results.
    pub results: Vec<DType>,
    /// The reason, as a clause.
    pub reason: &'static str,
}

pub(super) type Selection = Result<Kernel, &'static str>;

/// The maximum number of threads per block. With 255 registers per thread, the most that a thread has, such a block still
/// fits the 65,536 registers of a multiprocessor. Larger blocks may fail to launch.
pub(super) const MAX_THREADS: usize = 256;
const THREADS: usize = 128;
/// The maximum number of blocks per multiprocessor. For larger tensors, each thread computes several elements.
const WAVES: usize = 16;

/// Returns a 1D grid with one thread per unit, up to [`WAVES`] blocks per multiprocessor.
pub(super) fn grid_1d(units: usize, request: &Request<'_>) -> Geometry {
    let threads = units.next_multiple_of(32).clamp(32, THREADS);
    let most = request.multiprocessors.max(1) as usize * WAVES;
    let blocks = units.div_ceil(threads).clamp(1, most);
    Geometry {
        grid: [blocks as u32, 1, 1],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

pub(super) fn grid_per_row(rows: usize, elements: usize) -> Geometry {
    /// The number of elements per thread above which a block gets more threads.
    const EACH: usize = 8;
    let threads = elements
        .div_ceil(EACH)
        .next_power_of_two()
        .clamp(32, MAX_THREADS);
    Geometry {
        grid: [rows.clamp(1, GRID) as u32, 1, 1],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

/// The maximum number of blocks along grid axes 1 and 2.
pub(super) const GRID: usize = 65535;

/// Returns the number of lanes that share a sum over `elements`, with at least `each` per lane.
pub(super) fn lanes(elements: usize, each: usize) -> usize {
    let lanes = elements / each;
    match lanes {
        0 => 1,
        n => (1 << n.ilog2()).min(32),
    }
}

impl Request<'_> {
    /// Returns `N` operands, if they are readable as floats.
    pub(super) fn reals<const N: usize>(&self) -> Result<[Tensor; N], &'static str> {
        let operands = self.operands;
        let operands: [Tensor; N] = operands.try_into().map_err(|_| OPERANDS)?;
        operands.iter().try_for_each(|t| real(t.dtype))?;
        Ok(operands)
    }

    pub(super) fn result(&self) -> Result<Tensor, &'static str> {
        match self.results {
            [result] => Ok(*result),
            _ => Err("wrong number of results"),
        }
    }

    pub(super) fn real_result(&self) -> Result<Tensor, &'static str> {
        let result = self.result()?;
        float(result.dtype)?;
        Ok(result)
    }
}

pub(super) const OPERANDS: &str = "wrong number of operands";

pub(super) fn real(dtype: DType) -> Result<(), &'static str> {
    match dtype.is_integer() {
        true => Err("an operand's type cannot be read as real numbers"),
        false => Ok(()),
    }
}

pub(super) fn float(dtype: DType) -> Result<(), &'static str> {
    match dtype {
        DType::F32 | DType::F16 | DType::Bf16 => Ok(()),
        _ => Err("single elements of the type cannot be written as real numbers"),
    }
}

pub(super) fn index(dtype: DType) -> Result<(), &'static str> {
    match dtype {
        DType::I32 | DType::I64 => Ok(()),
        _ => Err("the indices are neither i32 nor i64"),
    }
}

pub(super) fn kernel(instance: Instance, params: Params, geometry: Geometry) -> Selection {
    Ok(Kernel {
        instance,
        params: params.into_bytes(),
        geometry,
        scratch: Scratch::default(),
        weights: Vec::new(),
    })
}

pub(super) fn instance(
    family: Family,
    template: &str,
    types: &[DType],
    arguments: Arguments,
) -> Instance {
    Instance::new(family, template, types, arguments)
}
