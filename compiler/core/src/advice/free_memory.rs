//! The free memory of devices.

/// The room of every device for stored bytes.
#[derive(Clone, Debug)]
pub(super) struct FreeMemory {
    /// ExtraFileMemory what overrides put there.
    pub(super) before_compute: Vec<f64>,
    /// ExtraFileMemory intermediate values, too.
    pub(super) all: Vec<f64>,
}
