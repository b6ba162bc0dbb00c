use tpc_ir::Output;

use crate::pipeline::CompiledModel;

/// True if the model computes embeddings instead of logits.
pub(super) fn embeds(compiled: &CompiledModel) -> bool {
    let outputs = &compiled.model.graph.outputs;
    let named = |o: &Output| matches!(o, Output::Named(name, _) if name == "embeddings");
    outputs.iter().any(named)
}
