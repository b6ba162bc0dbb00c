/// Bytes free for stored tensors, per device.
#[derive(Clone, Debug)]
pub(super) struct FreeMemory {
    /// Usable memory less the tensors that overrides put on the device.
    pub(super) before_compute: Vec<f64>,
    /// `before_compute` less the bytes of intermediate values.
    pub(super) all: Vec<f64>,
}
