use tpc_cpu::CpuTarget;
use tpc_ir::program::{Company, FileTarget, FusionContext, Target, WeightPart, WeightStorage};
use tpc_ir::{DType, Inst, Op, Place, TensorType};
use tpc_runtime::Options;

use super::fuse::groups;
use crate::planes::Planes;

/// Options of a program on CUDA devices.
#[derive(Clone, Copy, Debug)]
pub struct CudaOptions {
    /// The number of threads for host ops.
    pub threads: usize,
    /// Options that change numerics.
    pub options: Options,
    /// The kind of edges between kernels.
    pub edges: Edges,
    /// The number of launches per graph.
    pub mode: LaunchMode,
}

/// The number of launches per graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LaunchMode {
    /// All launches of a batch and phase.
    #[default]
    Whole,
    /// One launch. The executor waits for each launch, so an error names the launch. This is slow.
    Stepped,
    /// All launches of a batch and phase, one after another. The driver measures the time of each.
    Timed,
}

/// The kind of edge between consecutive kernels of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Edges {
    /// A kernel may start before the previous kernel has ended, and waits before it accesses shared data. Needs compute
    /// capability 9.0.
    #[default]
    Programmatic,
    /// A kernel starts after the previous kernel has ended.
    Full,
}

impl CudaOptions {
    /// Returns default options with this number of host threads.
    pub fn with_threads(threads: usize) -> CudaOptions {
        CudaOptions {
            threads,
            options: Options::default(),
            edges: Edges::default(),
            mode: LaunchMode::default(),
        }
    }
}

/// CUDA devices as a compilation target.
///
/// Devices store product weights in planes, even if a lookup also reads their rows. Other weights keep the layout of
/// the file. The host stores weights as the CPU target does. Buffers are aligned to 256 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct CudaTarget;

/// Returns the planes of a weight and its number of rows; `None` if an op that reads the weight needs the layout of the
/// file.
fn planes(weight: &TensorType, readers: &[(&Op, usize)]) -> Option<(Planes, u64)> {
    let product = |op: &Op| matches!(op, Op::MulMat(_) | Op::MulMatId(_));
    let lookup = |op: &Op| matches!(op, Op::GetRows(_));
    let first = |(op, i): &(&Op, usize)| *i == 0 && (product(op) || lookup(op));
    let read = readers.iter().all(first) && readers.iter().any(|(op, _)| product(op));
    read.then(|| weight_planes(weight)).flatten()
}

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

    /// Lanes add the pairs of groups of K in turn, so products over parts of K have another order. Attention of more
    /// than eight tokens uses another kernel.
    fn company(&self) -> Company {
        Company {
            subtrees: false,
            two_term_weights: 0,
            widths: 8,
            neighbours: false,
        }
    }
}
