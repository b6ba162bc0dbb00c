//! An op of a graph whose tensors get other sizes.

use super::rule::Slot;
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

/// The sizes that the tensors of one instruction get.
pub trait NewSizes {
    /// Returns the type of a tensor before the change.
    fn old(&self, slot: Slot) -> &TensorType;

    /// Returns the new sizes of a tensor.
    fn dims(&self, slot: Slot) -> [Dim; RANK];

    /// Returns the new start, along `axis` of an operand, of the `len` indices that start at `start` now.
    fn start(&self, operand: usize, axis: usize, start: &Dim, len: &Dim) -> Dim;
}

/// Implements `localise`, `resize` and `map_dims` of [`OpDef`](super::OpDef) for a size-independent op. Its attributes
/// contain neither sizes nor indices along an axis that may be split, so they hold for every part and size.
macro_rules! size_independent {
    () => {
        fn localise(&self, _: &$crate::op::LocalCtx<'_>) -> Option<Self> {
            Some(self.clone())
        }

        fn resize(&self, _: &dyn $crate::op::NewSizes) -> Self {
            self.clone()
        }

        fn map_dims(&self, _: &mut dyn FnMut(&$crate::Dim) -> Option<$crate::Dim>) -> Option<Self> {
            Some(self.clone())
        }
    };
}

pub(super) use size_independent;
