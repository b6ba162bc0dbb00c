/// The models of an architecture that make a choice without a metadata key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Models {
    /// All models.
    All,
    /// The models with `n` layers.
    WithLayers(u32),
}

impl Models {
    /// True if a model of `n_layer` layers is included.
    pub const fn include(self, n_layer: usize) -> bool {
        match self {
            Models::All => true,
            Models::WithLayers(n) => n as usize == n_layer,
        }
    }
}
