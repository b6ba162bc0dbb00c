//! The free memory of devices.

/// The room of every device for stored bytes.
#[derive(Clone, Debug)]
pub(super) struct FreeMemory {
    /// The room per device, less the bytes that overrides put on the device.
    pub(super) before_compute: Vec<f64>,
    /// The same, less the bytes of intermediate values.
    pub(super) all: Vec<f64>,
}
