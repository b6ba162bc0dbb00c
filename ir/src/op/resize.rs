use super::rule::Slot;
use crate::dims::Dim;
use crate::types::{RANK, TensorType};

/// The new sizes of one instruction's tensors.
pub trait NewSizes {
    /// Returns the old type of a tensor.
    fn old(&self, slot: Slot) -> &TensorType;

    /// Returns the new sizes of a tensor.
    fn dims(&self, slot: Slot) -> [Dim; RANK];

    /// Returns the new start, along `axis` of an operand, of the `len` indices from `start`.
    fn start(&self, operand: usize, axis: usize, start: &Dim, len: &Dim) -> Dim;
}

/// Implements `localise`, `resize` and `map_dims` for an op without sizes or split-axis indices.
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
