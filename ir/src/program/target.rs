//! What a kind of device stores, and how.

use super::StoredFormat;
use crate::dims::Bindings;
use crate::entity::{Inst, Value};
use crate::graph::Graph;
use crate::op::Op;
use crate::place::Place;
use crate::types::TensorType;

/// How a device stores a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The format.
    pub format: StoredFormat,
    /// Its bytes.
    pub bytes: u64,
}

/// What programs are made for: kinds of devices beside a host.
pub trait Target: std::fmt::Debug + Sync {
    /// How a place stores a weight of a type that these ops read, each as its operand of that number. `None` when the bytes
    /// overflow.
    fn stored(&self, place: Place, weight: &TensorType, readers: &[(&Op, usize)])
    -> Option<Stored>;

    /// Whether it has a kernel that computes all of these instructions at once. They are in program order and at one place, nothing
    /// else reads what but the last of them computes, and weights are stored as `format` says.
    fn fuses(
        &self,
        _graph: &Graph,
        _insts: &[Inst],
        _format: &dyn Fn(Value) -> StoredFormat,
    ) -> bool {
        false
    }

    /// Every buffer begins at a multiple of so many bytes, and these are a multiple of [`ALIGNMENT`](super::ALIGNMENT).
    fn alignment(&self) -> u64;
}

/// A device that stores weights as the file does.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileTarget;

impl Target for FileTarget {
    fn stored(
        &self,
        _place: Place,
        weight: &TensorType,
        _readers: &[(&Op, usize)],
    ) -> Option<Stored> {
        Some(Stored {
            format: StoredFormat::File,
            bytes: weight.bytes(&Bindings::default())?,
        })
    }

    fn alignment(&self) -> u64 {
        64
    }
}
