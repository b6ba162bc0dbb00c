//! The mask of causal attention and windows.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::CacheInputs;

/// Returns the mask of cells that a layer's tokens see.
pub(super) fn visible_cells(b: &mut Builder<'_>, cx: &LayerContext<'_>) -> Value {
    b.input(CacheInputs::new(cx.layer.reach).mask)
}
