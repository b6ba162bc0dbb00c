//! Selects kernels of expert products of many tokens.

use tpc_ir::DType;
use tpc_ir::op::MulMatId;

use super::expert_sum::{ExpertBias, SumOperands};
use super::gemm::{MAX_ORDERED_COLUMNS, Tile};
use super::kernel::{
    Geometry, OPERANDS, Request, Scratch, Selection, Tensor, grid_1d, index, instance, kernel, real,
};
use super::params::Params;
use super::product_template::{FAMILY, epilogue, plane_instance, product_params};
use super::source::{Arguments, Instance, tag};

/// True if an expert product with these indices reads [`Halves`](super::Halves).
pub(super) fn is_wide(ids: &Tensor) -> bool {
    ids.max_dims[1] > MAX_ORDERED_COLUMNS
}

/// The tiles of entries, and the sizes of their order in scratch memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpertTiles {
    tile: Tile,
    entries: usize,
    most: usize,
}

impl ExpertTiles {
    pub(super) fn new(a: &Tensor, ids: &Tensor) -> ExpertTiles {
        let entries = ids.max_dims[0].saturating_mul(ids.max_dims[1]);
        let experts = a.max_dims[2];
        let tile = Tile::of_experts(entries / experts.max(1));
        // Each expert, and the entries without an expert, may have a tile that is not full.
        let most = entries.div_ceil(tile.columns) + experts + 1;
        ExpertTiles {
            tile,
            entries,
            most,
        }
    }

    pub(super) fn params(self, before: Params, op: &MulMatId) -> Result<Params, &'static str> {
        let params = product_params(before, 1, op.window)?;
        Ok(params.u32(self.most as u32).u32(self.tile.columns as u32))
    }

    /// The scratch memory for the order, and for `rows` results of each entry.
    pub(super) fn scratch(self, rows: usize) -> Scratch {
        let order = 16 + 12 * self.most + 4 * self.entries;
        let results = rows.saturating_mul(self.entries).saturating_mul(4);
        Scratch {
            counters: 0,
            parts: order.saturating_add(results) as u64,
        }
    }

    pub(super) fn instance(self, template: Instance) -> Instance {
        self.tile.instance(template)
    }

    /// Returns the geometry of a product with `weights` weights of `rows` rows.
    pub(super) fn geometry(self, rows: usize, weights: usize) -> Geometry {
        let blocks = rows.div_ceil(self.tile.rows / weights);
        let columns = self.most * self.tile.columns;
        self.tile.geometry(blocks, columns, 1)
    }
}

/// Selects the kernel that orders entries by expert. Operands: the weight and the expert indices.
pub(super) fn expert_order(op: &MulMatId, request: &Request<'_>) -> Selection {
    let [a, ids] = request.operands else {
        return Err(OPERANDS);
    };
    index(ids.dtype)?;
    let tiles = ExpertTiles::new(a, ids);
    let template = instance(FAMILY, "expert_order", &[ids.dtype], Arguments::Faults);
    let shared = (a.max_dims[2] + 1) * 4;
    if shared > MAX_SHARED {
        return Err("too many experts");
    }
    let geometry = Geometry {
        grid: [1, 1, 1],
        threads: 256,
        shared_bytes: shared as u32,
    };
    let kernel = kernel(template, tiles.params(Params::new(), op)?, geometry)?;
    Ok(kernel.with_scratch(tiles.scratch(0)))
}

/// The shared memory that every device has.
const MAX_SHARED: usize = 48 << 10;

/// Selects a product of many tokens. Operands: the weight, its activations, the indices, and biases per expert.
pub(super) fn mul_mat_id(op: &MulMatId, request: &Request<'_>) -> Selection {
    let [a, _, ids, more @ ..] = request.operands else {
        return Err(OPERANDS);
    };
    let y = request.real_result()?;
    let types: Vec<DType> = more.iter().map(|t| t.dtype).collect();
    let template = plane_instance("experts_gemm", a.dtype, &[], Arguments::Params);
    let template = template.with(epilogue(&types)).with(tag(y.dtype));
    let tiles = ExpertTiles::new(a, ids);
    let params = tiles.params(Params::new(), op)?;
    let geometry = tiles.geometry(a.max_dims[1], 1);
    let kernel = kernel(tiles.instance(template), params, geometry)?;
    Ok(kernel.with_scratch(tiles.scratch(0)))
}

/// Selects the products of a weighted sum of many tokens, which [`sum_entries`] adds.
pub(super) fn entries(op: &MulMatId, of: &SumOperands<'_>) -> Selection {
    let types: Vec<DType> = of.bias.iter().map(|t| t.dtype).collect();
    let template = plane_instance("entries_gemm", of.a.dtype, &[], Arguments::Params);
    let template = template.with(epilogue(&types)).with(of.added.len());
    let tiles = ExpertTiles::new(of.a, of.ids);
    let params = tiles.params(Params::new(), op)?;
    let rows = of.a.max_dims[1];
    let kernel = kernel(tiles.instance(template), params, tiles.geometry(rows, 1))?;
    Ok(kernel.with_scratch(tiles.scratch(rows)))
}

/// Selects the kernel that adds the products of [`entries`]. It takes the same operands as the weighted sum.
pub(super) fn sum_entries(
    op: &MulMatId,
    (biased, more): (ExpertBias, usize),
    request: &Request<'_>,
) -> Selection {
    let of = SumOperands::new(biased, more, request)?;
    let y = request.real_result()?;
    of.added.iter().try_for_each(|t| real(t.dtype))?;
    let types: Vec<DType> = of.added.iter().map(|t| t.dtype).collect();
    let template = instance(FAMILY, "sum_entries", &[], Arguments::Params);
    let template = template.with(epilogue(&types)).with(tag(of.by.dtype));
    let template = template.with(tag(y.dtype)).with(of.bias.len());
    let tiles = ExpertTiles::new(of.a, of.ids);
    let params = tiles.params(Params::new(), op)?;
    let rows = of.a.max_dims[1];
    let geometry = grid_1d(rows * of.ids.max_dims[1], request);
    let kernel = kernel(template, params, geometry)?;
    Ok(kernel.with_scratch(tiles.scratch(rows)))
}
