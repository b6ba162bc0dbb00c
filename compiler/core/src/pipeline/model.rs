use tpc_ggml::engines::Geometry;
use tpc_ir::{Verified, stage};
use tpc_models::Summary;

/// A model's graph, and the facts of its header.
#[derive(Clone, Debug)]
pub struct Model {
    /// The graph.
    pub graph: Verified<stage::Model>,
    /// The header's facts.
    pub summary: Summary,
    /// Geometry for the engines' splits; empty for a captured graph.
    pub geometry: Geometry,
}
