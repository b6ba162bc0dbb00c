//! The mask of causal attention and of windows.

use tpc_ir::Value;

use super::builder::Builder;
use super::context::LayerContext;
use super::kv_cache::CacheInputs;

/// Returns the mask of the cells that the tokens of a layer see.
pub(super) fn visible_cells(b: &mut Builder<'_>, cx: &LayerContext<'_>) -> Value {
    b.input(CacheInputs::new(cx.layer.reach).mask)
}
