use super::{Company, Layout, StorageFormat};
use crate::dims::Bindings;
use crate::dtype::DType;
use crate::entity::{Inst, Value};
use crate::graph::Graph;
use crate::op::{Op, Weight};
use crate::place::Place;
use crate::types::TensorType;

/// The storage of a weight on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WeightStorage {
    /// The format.
    pub format: StorageFormat,
    /// The size in bytes.
    pub bytes: u64,
}

/// The weight, or its part, that a place stores.
#[derive(Clone, Copy, Debug)]
pub struct WeightPart<'a> {
    /// The type of the part.
    pub ty: &'a TensorType,
    /// The first index along axis 0 of the file's tensor; 0 for several runs of blocks.
    pub start: u64,
}

impl<'a> WeightPart<'a> {
    /// Returns the part that a weight stores.
    pub fn of(op: &Weight, ty: &'a TensorType) -> WeightPart<'a> {
        WeightPart {
            ty,
            start: op.row_start(),
        }
    }

    /// Returns a whole weight of this type.
    pub const fn whole(ty: &'a TensorType) -> WeightPart<'a> {
        WeightPart { ty, start: 0 }
    }
}

/// The graph around instructions that a target may fuse.
pub trait FusionContext {
    /// Returns the graph.
    fn graph(&self) -> &Graph;

    /// Returns the instructions that read a value.
    fn users(&self, value: Value) -> &[Inst];

    /// Returns the storage format of a value.
    fn format(&self, value: Value) -> StorageFormat;

    /// True if the instruction is a view, which needs no launch.
    fn is_view(&self, inst: Inst) -> bool;
}

/// A kind of device that programs are compiled for.
pub trait Target: std::fmt::Debug + Sync {
    /// Returns the storage of a weight at a place; `None` on overflow. A reader is an op and an operand number.
    fn weight_storage(
        &self,
        place: Place,
        weight: WeightPart<'_>,
        readers: &[(&Op, usize)],
    ) -> Option<WeightStorage>;

    /// Returns the smallest stored part of a weight read only by products, in elements along axis 0: a block of the
    /// file, or less if the place repacks blocks.
    fn granule(&self, _place: Place, dtype: DType) -> u64 {
        StorageFormat::FILE.granule(dtype)
    }

    /// Returns the sets of instructions that one kernel can compute, preferred sets first. A set is in program order
    /// and contains the views between its instructions.
    ///
    /// The caller uses sets that form valid launches, each instruction once, and stores values that other launches
    /// read.
    fn groups(&self, _around: &dyn FusionContext) -> Vec<Vec<Inst>> {
        Vec::new()
    }

    /// Returns the alignment of buffers in bytes, a multiple of [`ALIGNMENT`](super::ALIGNMENT).
    fn alignment(&self) -> u64;

    /// Returns the conditions under which results keep their bits.
    fn company(&self) -> Company {
        Company::UNKNOWN
    }
}

/// A target that stores weights in the blocks of the file.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTarget;

impl Target for FileTarget {
    fn weight_storage(
        &self,
        _place: Place,
        weight: WeightPart<'_>,
        _readers: &[(&Op, usize)],
    ) -> Option<WeightStorage> {
        let rows = Layout::dense(weight.ty)?;
        Some(WeightStorage {
            format: StorageFormat::FILE,
            bytes: rows.span_bytes(weight.ty, &Bindings::default())?,
        })
    }

    fn alignment(&self) -> u64 {
        64
    }
}
