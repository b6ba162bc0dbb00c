/// The layers whose experts stay on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostExperts {
    /// The first n layers.
    First(u64),
    /// All layers.
    All,
}

impl HostExperts {
    /// No layers.
    pub const NONE: HostExperts = HostExperts::First(0);

    /// True if the experts of `layer` (from 0) stay on the host.
    pub const fn contains(self, layer: u64) -> bool {
        match self {
            HostExperts::First(n) => layer < n,
            HostExperts::All => true,
        }
    }

    /// Counts the layers with experts on the host, in a model of `n_layer` layers.
    pub fn count(self, n_layer: u64) -> u64 {
        match self {
            HostExperts::First(n) => n.min(n_layer),
            HostExperts::All => n_layer,
        }
    }

    /// True if no experts stay on the host.
    pub fn is_none(self) -> bool {
        self == HostExperts::NONE
    }
}
