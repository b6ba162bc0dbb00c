//! Which models of an architecture.

/// Which models of an architecture make a choice of which no metadata key tells: known by their depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// All.
    All,
    /// Those of so many layers.
    WithLayers(u32),
}

impl Models {
    /// Whether a model of so many layers is one of them.
    pub const fn include(self, n_layer: usize) -> bool {
        match self {
            Models::All => true,
            Models::WithLayers(n) => n as usize == n_layer,
        }
    }
}
