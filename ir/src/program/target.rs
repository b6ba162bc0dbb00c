//! Targets: the storage of weights, fused kernels and the alignment of a kind of device.

use super::{Layout, StorageFormat};
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
    /// Its bytes.
    pub bytes: u64,
}

/// The weight, or the part of one, that a place stores.
#[derive(Clone, Copy, Debug)]
pub struct WeightPart<'a> {
    /// Its type.
    pub ty: &'a TensorType,
    /// The index along axis 0 of the file's tensor with which its rows begin; 0 where they are several runs of blocks.
    pub start: u64,
}

impl<'a> WeightPart<'a> {
    /// The part that a weight of this type stores.
    pub fn of(op: &Weight, ty: &'a TensorType) -> WeightPart<'a> {
        WeightPart {
            ty,
            start: op.row_start(),
        }
    }

    /// A whole weight of this type.
    pub const fn whole(ty: &'a TensorType) -> WeightPart<'a> {
        WeightPart { ty, start: 0 }
    }
}

/// The graph around the instructions that a target may fuse into one launch.
pub trait FusionContext {
    /// The graph.
    fn graph(&self) -> &Graph;

    /// The instructions that read a value.
    fn users(&self, value: Value) -> &[Inst];

    /// The storage format of a value.
    fn format(&self, value: Value) -> StorageFormat;

    /// True if an instruction is a view, which needs no launch.
    fn is_view(&self, inst: Inst) -> bool;
}

/// A kind of device beside a host, for which programs are made.
pub trait Target: std::fmt::Debug + Sync {
    /// The storage of a weight at a place. Each reader is an op and the number of the operand. `None` when the bytes overflow.
    fn weight_storage(
        &self,
        place: Place,
        weight: WeightPart<'_>,
        readers: &[(&Op, usize)],
    ) -> Option<WeightStorage>;

    /// The fewest elements along axis 0 of a weight of a type that such a place stores apart from their neighbours, where
    /// products alone read the weight: the block of the file, or less where blocks are taken to pieces.
    fn granule(&self, _place: Place, dtype: DType) -> u64 {
        StorageFormat::FILE.granule(dtype)
    }

    /// Sets of instructions of which it has a kernel that computes them at once, each in program order: those that it would rather
    /// have come first. Views between them belong to a set. A program takes those that can be launches: an instruction is in one
    /// set, and what is read elsewhere lies in memory.
    fn groups(&self, _around: &dyn FusionContext) -> Vec<Vec<Inst>> {
        Vec::new()
    }

    /// Every buffer begins at a multiple of so many bytes, and these are a multiple of [`ALIGNMENT`](super::ALIGNMENT).
    fn alignment(&self) -> u64;
}

/// A device that stores weights as the file does.
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
