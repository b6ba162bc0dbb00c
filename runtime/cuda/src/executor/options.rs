//! How programs are made for CUDA devices and run on them.

use tpc_cpu::CpuTarget;
use tpc_ir::program::{FileTarget, FusionContext, Target, WeightPart, WeightStorage};
use tpc_ir::{DType, Inst, Op, Place, TensorType};
use tpc_runtime::Options;

use super::fuse::groups;
use crate::planes::Planes;

/// How a program runs on CUDA devices.
#[derive(Clone, Copy, Debug)]
pub struct CudaOptions {
    /// Threads for the ops that the host runs.
    pub threads: usize,
    /// Choices of arithmetic.
    pub options: Options,
    /// How kernels follow each other.
    pub edges: Edges,
}

/// How a kernel follows the one before it on its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edges {
    /// It may start before that has ended, and waits itself before it reads or writes what others do: on devices that know it,
    /// which are those of compute capability 9.0 and later.
    #[default]
    Programmatic,
    /// It starts when that has ended.
    Full,
}

impl CudaOptions {
    /// Returns the default options with this number of threads of the host.
    pub fn with_threads(threads: usize) -> CudaOptions {
        CudaOptions {
            threads,
            options: Options::default(),
            edges: Edges::default(),
        }
    }
}

/// CUDA devices as a target of programs: they store weights that products read in planes, also where rows are looked up in them,
/// and others as the file does. Their host stores weights as the CPU does. Buffers begin at multiples of 256 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaTarget;

/// The planes and the rows of a weight of which these are the readers; `None` where it is stored as in the file.
fn planes(weight: &TensorType, readers: &[(&Op, usize)]) -> Option<(Planes, u64)> {
    let product = |op: &Op| matches!(op, Op::MulMat(_) | Op::MulMatId(_));
    let lookup = |op: &Op| matches!(op, Op::GetRows(_));
    let first = |(op, i): &(&Op, usize)| *i == 0 && (product(op) || lookup(op));
    let read = readers.iter().all(first) && readers.iter().any(|(op, _)| product(op));
    read.then(|| weight_planes(weight)).flatten()
}

/// The planes and the rows of a weight of a type.
pub(super) fn weight_planes(weight: &TensorType) -> Option<(Planes, u64)> {
    let [k, rows @ ..] = weight.dims.each_ref().map(tpc_ir::Dim::as_const);
    let planes = Planes::new(weight.dtype, usize::try_from(k?).ok()?)?;
    let mut sizes = rows.into_iter();
    let rows = sizes.try_fold(1_u64, |n, size| n.checked_mul(size?))?;
    (rows > 0).then_some((planes, rows))
}

impl Target for CudaTarget {
    fn weight_storage(
        &self,
        place: Place,
        weight: WeightPart<'_>,
        readers: &[(&Op, usize)],
    ) -> Option<WeightStorage> {
        match place {
            Place::Host => CpuTarget.weight_storage(place, weight, readers),
            _ => match planes(weight.ty, readers) {
                Some((planes, rows)) => Some(WeightStorage {
                    format: Planes::FORMAT,
                    bytes: planes.offsets(rows)?.1,
                }),
                None => FileTarget.weight_storage(place, weight, readers),
            },
        }
    }

    fn granule(&self, place: Place, dtype: DType) -> u64 {
        match place {
            Place::Host => CpuTarget.granule(place, dtype),
            _ => Planes::FORMAT.granule(dtype),
        }
    }

    fn groups(&self, around: &dyn FusionContext) -> Vec<Vec<Inst>> {
        groups(around)
    }

    fn alignment(&self) -> u64 {
        256
    }
}
