//! The free memory of devices.

/// The room of every device for stored bytes.
#[derive(Clone, Debug)]
pub(super) struct FreeMemory {
    /// The room less the bytes that overrides put on the device.
    pub(super) before_compute: Vec<f64>,
    /// The room after subtracting intermediate values as well.
    pub(super) all: Vec<f64>,
}
