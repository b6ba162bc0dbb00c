//! `--n-cpu-moe` and `--cpu-moe`: the layers whose experts stay on the host.

/// The layers whose experts stay on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostExperts {
    /// The number of first layers.
    First(u64),
    /// All layers.
    All,
}

impl HostExperts {
    /// No layer: all experts are on the devices.
    pub const NONE: HostExperts = HostExperts::First(0);

    /// Checks that the experts of this layer, counted from 0, stay on the host.
    pub const fn contains(self, layer: u64) -> bool {
        match self {
            HostExperts::First(n) => layer < n,
            HostExperts::All => true,
        }
    }

    /// Counts these layers among `n_layer` layers.
    pub fn count(self, n_layer: u64) -> u64 {
        match self {
            HostExperts::First(n) => n.min(n_layer),
            HostExperts::All => n_layer,
        }
    }

    /// Checks that the experts of all layers are on the devices.
    pub fn is_none(self) -> bool {
        self == HostExperts::NONE
    }
}
