use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::CacheInputs;

/// Returns the mask of the cells that causal attention and the window show to a layer's tokens.
pub(super) fn visible_cells(b: &mut Builder<'_>, cx: &LayerContext<'_>) -> Value {
    b.input(CacheInputs::new(cx.layer.reach).mask)
}
