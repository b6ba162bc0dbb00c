//! Kernels: an op on elements of known types, for batches of up to some sizes.

use tpc_ir::program::StoredFormat;
use tpc_ir::{DType, RANK};
use tpc_runtime::Options;

use super::params::Params;
use super::source::{Arguments, Family, Instance};

/// A tensor that a kernel is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// The type of its elements.
    pub dtype: DType,
    /// Its largest sizes.
    pub max_dims: [usize; RANK],
    /// How it is stored.
    pub format: StoredFormat,
}

impl Tensor {
    /// One that is stored as in a file.
    pub const fn new(dtype: DType, max_dims: [usize; RANK]) -> Tensor {
        Tensor {
            dtype,
            max_dims,
            format: StoredFormat::File,
        }
    }

    /// The number of its elements at most.
    pub fn elements(&self) -> usize {
        self.max_dims[0].saturating_mul(self.rows())
    }

    /// The number of its rows at most.
    pub fn rows(&self) -> usize {
        let rows = self.max_dims[1].saturating_mul(self.max_dims[2]);
        rows.saturating_mul(self.max_dims[3])
    }
}

/// What a kernel is chosen for.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The operands.
    pub operands: &'a [Tensor],
    /// The results.
    pub results: &'a [Tensor],
    /// Choices outside the graph.
    pub options: Options,
    /// The streaming multiprocessors of the device.
    pub multiprocessors: u32,
}

/// The blocks of a launch and their threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// The blocks in each direction.
    pub grid: [u32; 3],
    /// The threads of a block.
    pub threads: u32,
    /// The bytes of shared memory per block that the kernel does not declare itself.
    pub shared_bytes: u32,
}

/// Memory that a kernel arguments besides its tensors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch {
    /// The bytes of counters, which are zero before and after the launch.
    pub counters: u64,
    /// The bytes of what its blocks leave for each other.
    pub parts: u64,
}

impl Scratch {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Scratch) -> Scratch {
        Scratch {
            counters: self.counters.max(other.counters),
            parts: self.parts.max(other.parts),
        }
    }

    /// Whether it is nothing.
    pub fn is_none(self) -> bool {
        self == Scratch::default()
    }
}

/// A kernel of an op.
///
/// It is given the views of the operands, of the results, and of the size in the op's attributes that it works with, if there is
/// one: as axis 0 of a view of nothing. Where it arguments [scratch memory](Scratch), two more views follow: that of the counters, and that of the
/// parts. All lie in the memory of the device, as do its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// What it is compiled from.
    pub instance: Instance,
    /// The bytes of its parameters.
    pub params: Vec<u8>,
    /// The blocks and threads for the largest batch.
    pub geometry: Geometry,
    /// What else it arguments.
    pub scratch: Scratch,
}

impl Kernel {
    /// With scratch memory.
    pub(super) fn with_scratch(self, scratch: Scratch) -> Kernel {
        Kernel { scratch, ..self }
    }
}

/// An op on these elements has no kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no CUDA kernel for {op} on {operands:?} giving {results:?}: {reason}")]
pub struct Unsupported {
    /// The op's name.
    pub op: &'static str,
    /// Element types of the operands.
    pub operands: Vec<DType>,
    /// Element types of the results.
    pub results: Vec<DType>,
    /// Why, in a clause.
    pub reason: &'static str,
}

/// A kernel, or why there is none.
pub(super) type Selection = Result<Kernel, &'static str>;

/// Threads of a block where it has no reason for another number.
const THREADS: usize = 128;
/// Blocks per multiprocessor, beyond which threads take more than one element.
const WAVES: usize = 16;

/// Blocks of threads for so many units, each of which takes a thread.
pub(super) fn flat(units: usize, request: &Request<'_>) -> Geometry {
    let threads = units.next_multiple_of(32).clamp(32, THREADS);
    let most = request.multiprocessors.max(1) as usize * WAVES;
    let blocks = units.div_ceil(threads).clamp(1, most);
    Geometry {
        grid: [blocks as u32, 1, 1],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

/// A block of threads for each row of so many elements.
pub(super) fn per_row(rows: usize, elements: usize) -> Geometry {
    /// Elements that a thread takes before there are more threads.
    const EACH: usize = 8;
    let threads = elements.div_ceil(EACH).next_power_of_two().clamp(32, 512);
    Geometry {
        grid: [rows.clamp(1, GRID) as u32, 1, 1],
        threads: threads as u32,
        shared_bytes: 0,
    }
}

/// The most blocks along axes 1 and 2 of a grid.
pub(super) const GRID: usize = 65535;

/// The lanes that share a sum over `elements`, of which each adds at least `each`.
pub(super) fn lanes(elements: usize, each: usize) -> usize {
    let lanes = elements / each;
    match lanes {
        0 => 1,
        n => (1 << n.ilog2()).min(32),
    }
}

impl Request<'_> {
    /// The operands, if there are as many and all are real.
    pub(super) fn reals<const N: usize>(&self) -> Result<[Tensor; N], &'static str> {
        let operands = self.operands;
        let operands: [Tensor; N] = operands.try_into().map_err(|_| OPERANDS)?;
        operands.iter().try_for_each(|t| real(t.dtype))?;
        Ok(operands)
    }

    /// The only result.
    pub(super) fn result(&self) -> Result<Tensor, &'static str> {
        match self.results {
            [result] => Ok(*result),
            _ => Err("it has another number of results"),
        }
    }

    /// The only result, whose elements are written one by one as reals.
    pub(super) fn real_result(&self) -> Result<Tensor, &'static str> {
        let result = self.result()?;
        float(result.dtype)?;
        Ok(result)
    }
}

/// Why operands do not fit in number.
pub(super) const OPERANDS: &str = "it has another number of operands";

/// Fails unless elements of the type are read as reals.
pub(super) fn real(dtype: DType) -> Result<(), &'static str> {
    match dtype.is_integer() {
        true => Err("an operand's type cannot be read as real numbers"),
        false => Ok(()),
    }
}

/// Fails unless elements of the type are read and written one by one as reals.
pub(super) fn float(dtype: DType) -> Result<(), &'static str> {
    match dtype {
        DType::F32 | DType::F16 | DType::Bf16 => Ok(()),
        _ => Err("single elements of the type cannot be written as real numbers"),
    }
}

/// Fails unless the elements are indices.
pub(super) fn index(dtype: DType) -> Result<(), &'static str> {
    match dtype {
        DType::I32 | DType::I64 => Ok(()),
        _ => Err("indices are i32 or i64"),
    }
}

/// A kernel of these parts.
pub(super) fn kernel(instance: Instance, params: Params, geometry: Geometry) -> Selection {
    Ok(Kernel {
        instance,
        params: params.into_bytes(),
        geometry,
        scratch: Scratch::default(),
    })
}

/// An instance of a template of a family, on these types.
pub(super) fn instance(
    family: Family,
    template: &str,
    types: &[DType],
    arguments: Arguments,
) -> Instance {
    Instance::new(family, template, types, arguments)
}
