use tpc_ggml::engines::Geometry;
use tpc_ir::{Verified, stage};
use tpc_models::Summary;

/// A model's graph and header facts.
#[derive(Clone, Debug)]
pub struct Model {
    /// The graph.
    pub graph: Verified<stage::Model>,
    /// Header facts.
    pub summary: Summary,
    /// Sizes that engines split by; empty for a captured graph.
    pub geometry: Geometry,
}
