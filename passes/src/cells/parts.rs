//! Views of caches and masks with an axis that counts parts: block `b` of the cells belongs to part `b mod parts`.

use tpc_ir::op::{Permute, Reshape};
use tpc_ir::{CELL_BLOCK, Dim, RANK, Value};

use super::Builder;

/// Returns the rounds of blocks in an axis of cells.
fn rounds(cells: &Dim, parts: u64) -> Dim {
    let unit = parts * CELL_BLOCK as u64;
    let rounds = cells.checked_div(&unit.into());
    rounds.expect("invariant: the graph counts cells in units of a block for each part")
}

fn product<const N: usize>(dims: [&Dim; N]) -> Dim {
    Dim::product(dims).expect("invariant: the sizes of a cache fit")
}

/// Divides the visible cells `[d, heads, cells]` of a cache. Returns `[d, heads, cells / parts, parts]`.
pub(super) fn of_cache(b: &mut Builder<'_>, x: Value, parts: u64, layer: Option<u32>) -> Value {
    let [d, heads, cells, _] = b.new.out.value(x).ty.dims.clone();
    let (block, rounds) = (Dim::constant(CELL_BLOCK as u64), rounds(&cells, parts));
    let dims = [
        product([&d, &heads, &block]),
        parts.into(),
        rounds.clone(),
        Dim::ONE,
    ];
    let x = b.push(Reshape { dims }, vec![x], layer);
    let axes = [0, 2, 1, 3];
    let x = b.push(Permute { axes }, vec![x], layer);
    let dims = [d, heads, product([&block, &rounds]), parts.into()];
    b.push(Reshape { dims }, vec![x], layer)
}

/// Divides a mask `[cells, tokens]`. Returns `[cells / parts, tokens, 1, parts]`.
pub(super) fn of_mask(b: &mut Builder<'_>, x: Value, parts: u64, layer: Option<u32>) -> Value {
    let [cells, tokens, ..] = b.new.out.value(x).ty.dims.clone();
    let (block, rounds) = (Dim::constant(CELL_BLOCK as u64), rounds(&cells, parts));
    let dims: [Dim; RANK] = [block.clone(), parts.into(), rounds.clone(), tokens.clone()];
    let x = b.push(Reshape { dims }, vec![x], layer);
    let axes = [0, 3, 1, 2];
    let x = b.push(Permute { axes }, vec![x], layer);
    let dims = [product([&block, &rounds]), tokens, Dim::ONE, parts.into()];
    b.push(Reshape { dims }, vec![x], layer)
}
