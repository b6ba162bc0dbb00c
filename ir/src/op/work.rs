use super::rule::Slot;
use crate::dtype::DType;

/// The work of one op on one device.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Arithmetic operations.
    pub flops: f64,
    /// Bytes read and written.
    pub bytes: f64,
}

impl Work {
    /// Zero work, for ops that are free or timed as transfers.
    pub const NONE: Work = Work {
        flops: 0.0,
        bytes: 0.0,
    };

    /// Returns one operation, one f32 read and one f32 write per element of the first result.
    pub fn per_element(on: &dyn Extents) -> Work {
        let out = on.elements(Slot::Result(0));
        Work {
            flops: out,
            bytes: 8.0 * out,
        }
    }
}

/// The sizes of an instruction's tensors on one device, for one batch.
pub trait Extents {
    /// Returns the element type.
    fn dtype(&self, slot: Slot) -> DType;

    /// Returns the number of indices along an axis over all devices; `None` if the batch does not determine it.
    fn size(&self, slot: Slot, axis: usize) -> Option<u64>;

    /// Returns the number of elements on this device.
    fn elements(&self, slot: Slot) -> f64;

    /// Returns the number of elements over all devices.
    fn total_elements(&self, slot: Slot) -> f64;

    /// Returns the bytes of a weight operand on this device.
    fn stored_bytes(&self, operand: usize) -> f64;

    /// Returns the expected load of the busiest device for `draws` draws of experts, and the number of this device's
    /// experts. `None` unless the experts, along axis 2 of operand 0, are split.
    fn expert_load(&self, draws: f64) -> Option<ExpertShare>;
}

/// The share of one device in a product with split experts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertShare {
    /// Expected draws on the busiest device.
    pub busiest: f64,
    /// Number of experts on this device.
    pub own: f64,
}
