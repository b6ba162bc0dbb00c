//! Parts of caches that are divided by cells, as kernel parameters.

use tpc_ir::CellParts;

use super::params::Params;

/// Appends the parts of a cache's cells that a device stores.
///
/// # Errors
///
/// Returns an error for parts outside the cache.
pub(super) fn cell_params(
    params: Params,
    cells: Option<CellParts>,
) -> Result<Params, &'static str> {
    let Some(CellParts { first, count, of }) = cells else {
        return Ok(params.u32(0).u32(0).u32(0));
    };
    if first
        .checked_add(count)
        .is_none_or(|end| count == 0 || end > of)
    {
        return Err("the parts of the cells are outside the cache");
    }
    params.size(first)?.size(count)?.size(of)
}
