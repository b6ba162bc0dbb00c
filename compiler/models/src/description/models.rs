//! Models of an architecture, told apart by their depth.

/// The models of an architecture that make a choice without a metadata key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// All.
    All,
    /// The models with this number of layers.
    WithLayers(u32),
}

impl Models {
    /// Returns true if a model of `n_layer` layers is one of them.
    pub const fn include(self, n_layer: usize) -> bool {
        match self {
            Models::All => true,
            Models::WithLayers(n) => n as usize == n_layer,
        }
    }
}
